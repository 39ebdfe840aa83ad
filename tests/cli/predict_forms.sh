# SPDX-License-Identifier: Apache-2.0
# What a model expects: for people, for programs, one answer for each text.
. "$SOURCE/tests/cli/generate_model.sh"
llama names 5 12 '"bos_token_id":4,"eos_token_id":4,'
vocab names a b c d '<|4|>'
llama letters 6 64
vocab letters a b c d e '\n'
llama numbers 9 64
# three digits of each number with a point
short() {
    awk '{
        done = ""
        while (match($0, /-?[0-9]+\.[0-9]+(e-?[0-9]+)?/)) {
            done = done substr($0, 1, RSTART - 1) sprintf("%.3f", substr($0, RSTART, RLENGTH))
            $0 = substr($0, RSTART + RLENGTH)
        }
        print done $0
    }'
}

echo "-- a table: the text, sums, next tokens"
LC_ALL=C.UTF-8 try predict names ab --format table --top 3
try predict names ab --format table --top 9
LC_ALL=C.UTF-8 try predict letters $'c\n' --format table --top 2 --temperature 0.25 --token d --attention
try predict names --format table --top 1
try predict letters a --format table --top 1 --token e

echo "-- lines: part, position, token, id, rank, logit, probability, bits"
try predict names ab --top 3 | short
try predict names | short
try predict letters $'a\n' b --top 1 --token '\n' | short
try predict letters a --top 0 --token '#5' | short
try predict numbers 3,1,4 --top 2 --token '#7' --attention | short

echo "-- JSON"
try predict names ab --top 2 --json | short
try predict names --top 1 --token b --temperature 2 --json | short
try predict letters a --top 1 --attention --json | short
try predict letters a bc --top 1 --json | short

echo "-- lines of standard input are texts; all are cut in the same way"
printf 'ab\r\ncd\n' | embla predict names - | cmp - <(embla predict names ab cd) && echo same
printf 'ab\ncd\n' | embla predict names - --json | cmp - <(embla predict names ab cd --json) && echo same
printf 'cd\n' | embla predict names ab - a --top 1 | cut -f 1-5

echo "-- a temperature changes no order and no logit"
for x in 0.01 0.5 1 30 1000; do
    embla predict letters abcab --temperature $x | cut -f 1-6 | cksum
done | uniq | wc -l

echo "-- threads change nothing"
for threads in 1 2 3; do
    embla predict letters abcabcabcdeabcdeaaaa --attention --top 9 --threads $threads | cksum
done | uniq | wc -l

echo "-- what generate takes at temperature 0 is the token of rank 1"
text=abc
for i in 1 2 3 4 5; do
    next=$(embla predict letters "$text" --top 1 --format text | sed -n 's/^next\t[0-9]*\t\([^\t]*\)\t.*/\1/p')
    text=$text$(printf '%b' "$next."); text=${text%.}
done
[[ $(embla generate letters abc --tokens 5 --temperature 0; echo .) == "$text"$'\n.' ]] && echo same

echo "-- bits, their sum, perplexity; weights of a head sum to 1"
embla predict letters abcabc --attention | awk -F'\t' '
    $1 == "text" && $5 != "-" || $1 == "next" {
        wrong += ($7 - 2 ^ -$8) ^ 2 > 1e-12
        if ($1 == "next") all += $7
    }
    $1 == "attention" {heads[$5 "." $6] += $7; count++}
    END {
        for (head in heads) wrong += (heads[head] - 1) ^ 2 > 1e-12
        printf "%d wrong, %.3f, %d weights\n", wrong, all, count
    }'
embla predict letters abcabc --json | sed 's/.*"bits":\([^,]*\),"bits_per_token":\([^,]*\),"perplexity":\([^,]*\),.*/\1 \2 \3/' |
    awk '{print ($1 / 5 - $2) ^ 2 < 1e-12, (2 ^ $2 / $3 - 1) ^ 2 < 1e-12}'

echo "-- a tied head"
printf 'abcdef%.0s' {1..40} >text
embla train text -o tied --preset gpt2-mini --layers 1 --dim 16 --heads 2 --steps 1 --batch 1 --length 8 -q >train.txt
embla predict tied a --json | grep -o '"head":"[a-z]*"'
embla predict tied a --format table | grep head
