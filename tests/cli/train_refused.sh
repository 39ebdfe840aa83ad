# SPDX-License-Identifier: Apache-2.0
# What does not fit is refused with a sentence, and nothing is written.
seq 300 >numbers.txt
seq 300 | tr 0-9 a-j >letters.txt
refused() { try train "$@" | sed "s|$PWD/||g"; }
refused
refused numbers.txt
refused nowhere.txt -o x
refused numbers.txt -o nowhere/x --steps 1
refused numbers.txt -o x --preset gpt3
refused numbers.txt -o x --preset large
refused numbers.txt -o x --bytes --tokens-file
refused numbers.txt -o x --documents --tokens-file
refused numbers.txt -o x --tokens-file
refused numbers.txt -o x --words 5 --bytes
refused numbers.txt -o x --words 5 --tokens-file
refused numbers.txt -o x --words 0
refused numbers.txt -o x --words 5000000
refused numbers.txt -o x --heads 5
refused numbers.txt -o x --dim 0
refused numbers.txt -o x --length 5000
refused numbers.txt -o x --rate fast
refused numbers.txt -o x --rate -1
refused numbers.txt -o x --dropout 1
refused numbers.txt -o x --validation 2
refused numbers.txt -o x --schedule sine
refused numbers.txt -o x --steps 10 --warm-up 11
refused numbers.txt -o x --keep 0
refused numbers.txt -o x --save-every 0
refused numbers.txt -o x --ngram-heads 2
refused numbers.txt -o x --ngram-rows 100 --ngram-orders 3
refused numbers.txt -o x --ngram-rows 100 --ngram-orders 2,,3
refused numbers.txt -o x --ngram-shared here
refused numbers.txt -o x --watch e
refused numbers.txt -o x --watch 12
refused numbers.txt -o x --watch '#11'
refused numbers.txt -o x --watch 1,
refused numbers.txt -o x --plot letters.txt
refused numbers.txt -o x --from letters.txt
refused numbers.txt -o x --from letters.txt --dim 8
mkdir model
: >model/config.json
refused numbers.txt -o model
embla train numbers.txt -o trained --preset microgpt --steps 1 -q >/dev/null
refused numbers.txt -o trained
refused letters.txt -o x --from trained
refused numbers.txt -o x --from trained --preset gpt2-mini
refused numbers.txt -o x --from trained --bytes
refused numbers.txt -o high --preset microgpt --steps 20 --rate 1e20 -q
ls
printf 'ab\xff hello' >bad.txt
refused bad.txt -o x
