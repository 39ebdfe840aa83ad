# SPDX-License-Identifier: Apache-2.0
# The singular values of small tables, for people, for programs and as a chart.
. "$SOURCE/tests/cli/models.sh"
# engines differ in the last digits, and in their names
short() { sed -E 's/([0-9]\.[0-9]{3})[0-9]*/\1/g; s/"engine":"[^"]*"/"engine":".."/'; }
fox
try spectrum fox.vec
try spectrum fox.vec --centred --top 2
try spectrum fox.vec --top 0 --threads 1
LC_ALL=C.UTF-8 try spectrum fox.vec
embla spectrum fox.vec --json --top 3 | short
embla spectrum fox.vec --json | tr ',' '\n' | grep -c '^[0-9"s].*[0-9]'
echo "-- without an engine: all digits, on every kernel set"
for isa in scalar avx2 avx512; do
    EMBLA_ISA=$isa embla spectrum fox.vec --engine none --json | tr ',' '\n' | grep -E '^"(engine|singular)|^[0-9]' >$isa
    cmp scalar $isa
done
cat scalar
try spectrum fox.vec --engine oneblas
rm scalar avx2 avx512
echo "-- more numbers than rows"
printf '2 4\na 3 0 0 0\nb 0 4 0 0\n' >wide.vec
try spectrum wide.vec
try spectrum wide.vec --centred
echo "-- rows that are nothing"
printf '3 2\na 1 0\nb nan 1\nc 0 2\n' >nan.vec
try spectrum nan.vec
printf '2 3\na 0 0 0\nb 0 0 0\n' >zero.vec
try spectrum zero.vec
try spectrum zero.vec --json --quiet | short
printf '2 2\na 1 2\nb 1 2\n' >same.vec
try spectrum same.vec --centred
try spectrum same.vec
printf '1 1\na -2\n' >one.vec
try spectrum one.vec
printf '2 2\na 3e38 0\nb 0 3e38\n' >huge.vec
try spectrum huge.vec --top 1
echo "-- a chart"
try spectrum fox.vec --top 1 --plot s.svg | sed -E 's/[0-9.]+ kB/N kB/'
grep -c '<svg' s.svg
grep -o 'effective rank: [0-9.]*' s.svg
try spectrum fox.vec --plot s.svg
embla spectrum fox.vec --plot s.svg --force --json | wc -l
embla spectrum zero.vec --plot z.svg >/dev/null && grep -c '</svg>' z.svg
embla spectrum one.vec --plot o.svg >/dev/null && grep -c '</svg>' o.svg
ls
