# SPDX-License-Identifier: Apache-2.0
# A file of tokens with the words of another tokenizer.
printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' \
    "{'descr': '<u2', 'fortran_order': False, 'shape': (600,), }" >t.npy
for i in {1..100}; do printf '\1\0\2\0\3\0\4\0\5\0\6\0'; done >>t.npy
printf '%s\n' zero one two three four five six seven '<unk>' >words.txt
printf '{"zero":0,"one":1,"two":2,"three":3,"four":4,"five":5,"six":6,"<unk>":7}' >vocab.json
shape=(--preset gpt2-mini --layers 1 --heads 2 --dim 16 --length 16 --batch 4 --threads 1
    --tokens-file)
embla train t.npy --vocab words.txt -o lines "${shape[@]}" --steps 200 --rate 0.01 |
    grep -E '^(text|vocabulary|model)'
embla near lines two --top 1 --format text | cut -f1 | wc -l
embla generate lines --prompt 'one two' --tokens 6 --temperature 0
embla train t.npy --vocab vocab.json -o json "${shape[@]}" --steps 0 -q >/dev/null
embla info json | grep vocabulary
embla train t.npy --vocab lines -o no "${shape[@]}" --steps 0 2>&1 | sed "s|$PWD/||"
# resumed, the words are those of the folder
embla train --resume lines --steps 201 --watch two --sample-every 1 >out
grep -E '^vocabulary' out
grep -cE '^two |^        (one|two|three|four|five|six) ' out
embla generate lines --prompt 'one two' --tokens 2 --temperature 0
# tokens that the model does not have get rows; only these learn
printf '%s\n' zero one two three four five six seven '<unk>' eight nine >more.txt
cp t.npy more.npy
for i in 0 1 2 3 4 5 6 7; do printf '\x9\0\xa\0'; done |
    dd of=more.npy bs=1 seek=200 conv=notrunc status=none
embla train more.npy --vocab more.txt -o more --from lines --tokens-file --freeze trunk,positions,below:9 \
    --steps 20 --threads 1 | grep -E '^(model|added|frozen)' | sed "s|$PWD/||"
embla lookup lines 'six' --format json >a
embla lookup more 'six' --format json >b
cmp <(grep -o '"values.*' a) <(grep -o '"values.*' b) && echo "the old rows are the same"
embla generate more --prompt 'eight nine' --tokens 0
# refused
refused() { try train "$@" | sed "s|$PWD/||g"; }
printf '%s\n' zero one two >short.txt
printf 'a\xff\nb\nc\nd\ne\nf\ng\n' >bytes.txt
refused t.npy --vocab short.txt -o x "${shape[@]}"
refused t.npy --vocab bytes.txt -o x "${shape[@]}"
refused t.npy --vocab nowhere.json -o x "${shape[@]}"
refused words.txt --vocab words.txt -o x
refused words.txt --vocab words.txt -o x --words 5
printf '%s\n' a b c d e f g h i j k l >long.txt
refused t.npy --vocab long.txt -o x --from lines --tokens-file # other words
refused more.npy -o x --from lines --tokens-file # no words for the further tokens
refused --resume lines --vocab words.txt
ls
