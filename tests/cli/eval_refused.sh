# SPDX-License-Identifier: Apache-2.0
# A line that is not what it should be is an error that names it; nothing covered is one too.
. "$SOURCE/tests/cli/models.sh"
fox
printf 'lazy dog 9\nquick slow 8\n' >pairs.txt
try eval
try eval fox.vec
try eval fox.vec missing.txt
try eval missing.vec pairs.txt
try eval fox.vec pairs.txt --rows 0
try eval fox.vec pairs.txt --rows x
printf 'lazy dog 9\nquick slow\n' >short.txt
try eval fox.vec pairs.txt short.txt
printf ': a\nlazy dog quick slow\nlazy dog quick\n' >three.txt
try eval fox.vec three.txt
printf ': a\nlazy dog quick \xff\n' >bytes.txt
try eval fox.vec bytes.txt
: >empty.txt
try eval fox.vec empty.txt
try eval fox.vec fox.vec
# none of the words has a row
printf 'cat bird 9\nwolf wolf 8\n' >strangers.txt
printf ': a\ncat cats bird birds\n' >questions.txt
try eval fox.vec strangers.txt questions.txt
try eval fox.vec strangers.txt --json --quiet
# some have one: no error
try eval fox.vec strangers.txt pairs.txt --quiet
mkdir none
try eval fox.vec none
echo 'no questions here, none at all' >none/README.txt
try eval fox.vec none
make_model bare.safetensors a.weight:F32:4x4
try eval bare.safetensors pairs.txt
make_model mapped.safetensors embeddings:F32:4x4 mapping:I32:6:mod=4
words 6 >mapped.vocab.txt
try eval mapped.safetensors pairs.txt
make_model k.gguf text:general.architecture=llama tokens:a,b token_embd.weight:Q2_K:2x256
try eval k.gguf pairs.txt
# Pairs of sentences are not pairs of words.
printf 'score,one,two\n4.5,a lazy dog,the dog is lazy\n' >sts.csv
printf '4.5\ta lazy dog\tthe dog is lazy\n' >sts.tsv
try eval fox.vec sts.csv
try eval fox.vec sts.tsv
