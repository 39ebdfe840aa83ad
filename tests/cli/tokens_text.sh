# SPDX-License-Identifier: Apache-2.0
# Text to tokens and back, in every format.
. "$SOURCE/tests/cli/tokenizers.sh"
bert
bytes
try tokens bert.json 'Unaffable CAFE!'
try tokens bert.json 'Unaffable CAFE!' 'a' --special
try tokens bert.json 'Unaffable CAFE!' --format pieces
try tokens bert.json ' Unaffable!' --offsets --special
try tokens bert.json ' Unaffable  CAFE! ' --format text
try tokens bert.json ' a!' --format text --color always
try tokens bert.json 'a!' --special --json
try tokens bert.json 'a!' --pair 'unaffable' --special
try tokens bert.json 'a!' 'a' --pair 'unaffable' --special --max-tokens 5
try tokens bert.json 'a!' --pair 'a' --special --json
try tokens bert.json 'a' --pair 'a' --compare bytes.json
try tokens bert.json 'a' --pair 'a' --format text
printf '' | try tokens bert.json --pair 'a'
try tokens bert.json '[CLS] a' --plain
try tokens bert.json --decode 1 3 4 5 8 2
try tokens bert.json --decode '[1, 3, 4, 5, 8, 2]' --special
try tokens bert.json --decode 3 4 5 --json
printf '3 4\n\n9 8\n' | try tokens bert.json --decode
try tokens bert.json 'unaffable' 'a a' --count
try tokens bert.json 'unaffable' 'a a' --count --json
try tokens bert.json 'a a a' 'a' --max-tokens 2
try tokens bert.json 'a a a' 'a' --max-tokens 2 --quiet
try tokens bert.json 'unaffable abc' --compare bytes.json
try tokens bert.json 'unaffable abc' --compare bytes.json --count
printf 'a!\r\n\nunaffable' >lines.txt
try tokens bert.json --file lines.txt
try tokens bert.json <lines.txt
try tokens bert.json -f - <lines.txt
mkdir folder
cp bert.json folder/tokenizer.json
try tokens folder a
printf 'a\xff!' | try tokens bytes.json
printf 'a\xff!' | try tokens bytes.json --strict
for threads in 1 2; do
    for i in $(seq 1 3000); do echo "unaffable a $i !"; done |
        embla tokens bert.json --threads $threads | cksum
done
