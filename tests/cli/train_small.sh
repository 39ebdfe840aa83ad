# SPDX-License-Identifier: Apache-2.0
# A small training: facts, lines, a summary, a folder that the other verbs open.
# Times and where the text lies are masked; small products need no engine.
mask() {
    sed -E -e "s|$PWD/||" -e 's/ in [0-9.]+ s: .*/ in TIME/' \
        -e 's/^( +[0-9,]+ +[0-9.-]+ +[0-9.]*) .*/\1  ../' -e 's/, [0-9]+ threads?$/, N threads/'
}
seq 300 >numbers.txt
try train numbers.txt --preset microgpt -o numbers --steps 100 --validation 0.1 --threads 1 | mask
ls -A numbers numbers/checkpoints
head -n 1 numbers/loss.csv
wc -l <numbers/loss.csv
# step, loss, rate, norm, tokens, seconds; validation now and then
awk -F, 'NF != 7 || (NR > 1 && $1 != NR - 2)' numbers/loss.csv
# a pause is taken off once: the seconds of steps never fall
awk -F, 'NR > 1 { if ($7 <= last) print "seconds fall:", $0; last = $7 }' numbers/loss.csv
awk -F, '$3 != "" && NR > 1 {print $1}' numbers/loss.csv | tr '\n' ' '
echo
# the last step is always validated
embla train numbers.txt --preset microgpt -o last --steps 25 --validate-every 10 --validation 0.1 \
    -q >/dev/null
awk -F, '$3 != "" && NR > 1 {print $1}' last/loss.csv | tr '\n' ' '
echo
# a stream, by another preset; how it is trained may change
try train numbers.txt -o stream --layers 1 --heads 2 --dim 16 --length 8 --batch 2 --steps 20 \
    --every 10 --threads 1 | mask |
    sed -E -e 's/[0-9]\.[0-9]{4}/L.LLLL/g' -e '/^training/,/^$/d'
# a dim that the heads of the preset do not divide has fewer heads; rotary ones have even parts
heads() { embla train numbers.txt -o "heads$1" "${@:2}" --steps 0 --json | grep -o '"heads":[0-9]*'; }
heads 1 --dim 16
heads 2 --dim 32 --preset microgpt
heads 3 --dim 4 --preset microgpt --positions rotary
heads 4 --dim 20 --preset llama-mini
heads 5 --dim 7
# no step: the first weights, the same for the same seed
try train numbers.txt --preset microgpt -o zero --steps 0 -q
embla train numbers.txt --preset microgpt -o zero2 --steps 0 -q >/dev/null
embla train numbers.txt --preset microgpt -o other --steps 0 -q --seed 2 >/dev/null
cmp zero/model.safetensors zero2/model.safetensors && echo "the same"
cmp -s zero/model.safetensors other/model.safetensors || echo "another"
# what others make of it
for folder in numbers stream; do
    embla info $folder | grep -E '^(token table|vocabulary|rows)'
    embla doctor $folder | tail -n 1
    embla near $folder 1 --top 2 --format text | wc -l
    embla map $folder -o $folder.html | grep -c '11 points'
done
embla convert stream stream.gguf | grep verified
embla info stream.gguf | grep vocabulary
embla generate stream --tokens 8 --seed 1 >said && echo "it speaks"
