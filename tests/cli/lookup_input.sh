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
# an empty line or entry is never passed over
printf 'the\n\nfox\n' | embla lookup fox.vec - --plain 2>&1
echo "exit $?"
printf '2\n\n5\n' | embla lookup fox.vec --ids - --plain 2>&1
echo "exit $?"
printf '2\n5,\n' | embla lookup fox.vec --ids - --plain 2>&1
for list in 1,,2 1,2, ,1 '' ' ' '1 , ,2'; do try lookup fox.vec --ids "$list" --plain --dim 1; done
try lookup fox.vec --ids ' 1 2, 3 ,#4 ' --plain --dim 1
printf 'the\r\nfox\r\n' | embla lookup fox.vec - --plain --dim 1
printf '2\r\n5\r\n' | embla lookup fox.vec --ids - --plain --dim 1
mkdir empty
make_model empty/model.safetensors wte.weight:F32:2x1
echo '{"":1,"a":0}' >empty/vocab.json
printf 'a\n\n' | embla lookup empty - --plain
awk 'BEGIN { for (i = 0; i < 5000; i++) print (7 * i * i + 3 * i) % 12 }' >ids
embla lookup fox.vec --ids - --plain <ids | cut -f1 | cmp - ids && echo "5000 rows"
try lookup fox.vec the -o row.txt --plain --dim 2
cat row.txt
try lookup fox.vec the -o fox.vec --plain
ln fox.vec other.vec
try lookup fox.vec the -o other.vec --plain
try lookup fox.vec the -o missing/row.txt
echo kept >kept
try lookup fox.vec nothing -o kept --plain
cat kept
# what exists is replaced only when asked, and only by what is whole
try lookup fox.vec the -o kept --plain --dim 1
cat kept
ln -s kept link
try lookup fox.vec the -o link --plain --dim 1 --force
cat kept
[[ -L link ]] && echo "a link still"
chmod 640 kept
try lookup fox.vec fox -o kept --plain --dim 1 --force
stat -c %a kept
mkdir folder
try lookup fox.vec fox -o folder --plain --force
# a disk that is full at 1 MiB; the thread sanitizer writes a file of 512 KiB itself as it starts
for _ in {1..4}; do cat ids; done >many
(ulimit -f 1024; trap '' XFSZ; embla lookup fox.vec --ids - --plain -o kept --force <many 2>&1; echo "exit $?")
rm many
cat kept
try lookup fox.vec fox -o /dev/full --plain
try lookup fox.vec fox -o /dev/stdout --plain --dim 1
ls
cmp fox.vec "$SOURCE/demo/fox.vec" && echo "input unchanged"
# - is standard output, and there may be many operands
embla lookup fox.vec fox -o - --format tsv | cut -c 1-20
embla lookup fox.vec $(for i in $(seq 100); do echo fox; done) --plain | wc -l
