# SPDX-License-Identifier: Apache-2.0
# A tokenizer of one's own, and a model that is trained with it.
for i in 1 2 3 4 5 6; do
    echo 'The quick brown fox jumps over the lazy dog.'
    echo 'The dog sleeps, the quick fox runs.'
done >text.txt
try tokenizer text.txt -o bpe.json --size 290 --special '<|endoftext|>'
try tokenizer text.txt -o bpe.json
try tokenizer text.txt -o wp.json --kind wordpiece --size 60 --lowercase
try tokenizer text.txt -o words.json --kind words --special '[PAD],[UNK]' --min-count 6
try tokenizer text.txt -o bpe.json --size 290 --special '<|endoftext|>' --force --json --threads 2 |
    sed 's/,"seconds":.*}/}/'
try tokens bpe.json 'the quick fox<|endoftext|>'
try tokens wp.json 'The quick wolf'
try tokens words.json 'the quick wolf.'
try tokenizer text.txt -o unigram.json --kind unigram --size 60
try tokens unigram.json 'the quick wolf.' --format pieces
mkdir folder
cp text.txt folder/a.txt
try tokenizer folder -o same.json --size 290 --special '<|endoftext|>' --quiet
cmp same.json bpe.json && echo same
echo "-- what is wrong is said"
try tokenizer text.txt
try tokenizer -o x.json
try tokenizer missing.txt -o x.json
try tokenizer text.txt -o x.json --size 0
try tokenizer text.txt -o x.json --size 100
try tokenizer text.txt -o x.json --special 'a,,b'
try tokenizer text.txt -o x.json --special 'a,a'
try tokenizer text.txt -o x.json --kind unigram --size 4
try tokenizer text.txt -o x.json --kind other
printf 'ab\xff' >bad.txt
try tokenizer bad.txt -o x.json
: >empty.txt
try tokenizer empty.txt -o x.json
try tokenizer text.txt -o nowhere/x.json
echo "-- a signal leaves no half file"
for i in $(seq 1 60000); do echo "$i $((i * 7919 % 100003)) word$((i % 997)) $((i * i))"; done >long.txt
embla tokenizer long.txt -o x.json --size 100000 >out 2>err &
sleep 0.1
kill -TERM $! 2>/dev/null
wait $!
[[ $? -eq 0 || $(ls -A | grep -c 'x\.json') -eq 0 ]] && echo "all or nothing"
echo "-- a model of its tokens; generate uses the tokenizer that is stored with it"
shape=(--preset gpt2-mini --layers 1 --heads 2 --dim 16 --length 16 --batch 4 --threads 1)
embla train text.txt --tokenizer bpe.json -o model "${shape[@]}" --steps 20 --sample-every 20 -q |
    grep -c 'sample after step 20'
cmp bpe.json model/tokenizer.json && echo same
try generate model 'the quick fox' --tokens 0
embla generate model 'the quick fox' --tokens 3 --json | grep -o '"prompt":[^]]*]'
embla generate model/best 'the quick fox' --tokens 0
embla near model 'quick fox' --top 1 | wc -l
embla train text.txt --tokenizer bpe.json -o half "${shape[@]}" --steps 20 --save-every 10 -q >/dev/null
rm half/checkpoints/step-0000000020.safetensors
embla train --resume half -q >/dev/null
cmp model/model.safetensors half/model.safetensors && echo "the same"
embla train text.txt --tokenizer bpe.json --documents -o lines "${shape[@]}" --steps 2 -q >/dev/null
embla generate lines 'the quick fox' --tokens 0
try train text.txt --tokenizer wp.json --documents -o no "${shape[@]}"
try train text.txt --tokenizer text.txt -o no "${shape[@]}"
try train text.txt --tokenizer bpe.json --words 5 -o no "${shape[@]}"
