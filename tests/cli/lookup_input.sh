# SPDX-License-Identifier: Apache-2.0
# Tokens from standard input, and the output to a file.
. "$SOURCE/tests/cli/models.sh"
fox
printf 'the\n#5\nfox\n' | embla lookup fox.vec - --plain --dim 1
printf '2\n5 7\n11,0\n' | embla lookup fox.vec --ids - --plain --dim 1
printf 'the' | embla lookup fox.vec quick - . --plain --dim 1
printf '' | embla lookup fox.vec - --json
printf '2\nx\n' | embla lookup fox.vec --ids - --plain 2>&1
printf '2\0003\n' | embla lookup fox.vec --ids - --plain 2>&1
awk 'BEGIN { for (i = 0; i < 5000; i++) print (7 * i * i + 3 * i) % 12 }' >ids
embla lookup fox.vec --ids - --plain <ids | cut -f1 | cmp - ids && echo "5000 rows"
try lookup fox.vec the -o row.txt --plain --dim 2
cat row.txt
try lookup fox.vec the -o fox.vec --plain
ln fox.vec other.vec
try lookup fox.vec the -o other.vec --plain
try lookup fox.vec the -o missing/row.txt
echo kept >kept
try lookup fox.vec nothing -o kept
cat kept
cmp fox.vec "$SOURCE/examples/quick-brown-fox.vec" && echo "input unchanged"
