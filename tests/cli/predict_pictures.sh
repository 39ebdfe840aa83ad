# SPDX-License-Identifier: Apache-2.0
# A prediction as a picture: bars of the text's tokens and the next ones, cells of attention.
. "$SOURCE/tests/cli/generate_model.sh"
. "$SOURCE/tests/cli/pictures.sh"
export LC_ALL=C.UTF-8
llama odd 12 64 '"bos_token_id":11,"eos_token_id":11,'
vocab odd ' ' '\n' 'ü' '😀' '<' 'b' '\u202e' '日' 'a' '\t' '\u0000' '<|end|>'
llama letters 6 64
vocab letters a b c d e '\n'

echo "-- words of every kind, ends of a text, attention"
embla predict odd $'a \n😀ü<日\t' --top 12 --attention -o odd.svg && texts odd.svg
echo "-- no text, one token, the asked token inside and outside the list"
embla predict odd --top 2 -o none.svg && texts none.svg
embla predict letters a --top 2 --token c --temperature 0.5 -o one.svg && texts one.svg
embla predict letters a --top 3 --token e -o inside.svg && texts inside.svg | tail -n 1
embla predict letters a --top 0 -o text.svg && texts text.svg | tail -n 1

echo "-- the same numbers as in text"
embla predict letters abc --top 2 --attention -o abc.txt
embla predict letters abc --top 2 --attention -o abc.svg && texts abc.svg | tail -n 1
cut -f 1,3,5- abc.txt | awk -F'\t' '$1 == "attention" {printf "%s %.2f\n", $2, $NF; next} $3 != "-" {printf "%s %s %.2f %.4f\n", $2, $3, $4, $5}'

echo "-- a long text leaves its middle out"
long=$(printf 'abcd%.0s' {1..12})
embla predict letters "$long" --attention --top 1 -o long.svg && texts long.svg | sed -n 2,3p
grep -c '<rect class="f1[0-9]\|<rect class="f2[0-9]\|<rect class="f3[0-4]' long.svg

echo "-- many heads: the last layers, without numbers"
printf 'abcdef%.0s' {1..40} >text
embla train text -o deep --layers 24 --heads 8 --dim 16 --steps 1 --batch 1 --length 8 -q >train.txt
embla predict deep ab --attention --top 0 -o deep.svg && texts deep.svg | sed -n 3p
texts deep.svg | grep -o 'layer [0-9]*' | sed -n '1p;$p'

echo "-- every form"
for name in x.html x.txt x.json; do embla predict letters ab --top 2 -o $name; done
grep -o '<h1>.*</h1>' x.html
embla predict letters ab --top 2 --format text | cmp - x.txt && embla predict letters ab --top 2 --json | cmp - x.json && echo same
printf 'ab\n' | embla predict letters - --top 2 -o line.svg && embla predict letters ab --top 2 --format svg | cmp - line.svg && echo same
try predict letters ab -o x.txt
try predict letters ab -o x.csv
try predict letters ab --json -o x.png
try predict letters ab --top 65 -o top.svg
try predict letters ab abc -o two.svg
try predict letters -o letters/config.json --force
ls
