# SPDX-License-Identifier: Apache-2.0
# What cannot be predicted is said, and why.
. "$SOURCE/tests/cli/generate_model.sh"
fox
llama m 6 8
vocab m a b c d e f
try predict
try predict nothing
echo "-- a table is no model"
try predict fox.vec dog
try predict fox.vec dog --json
try generate fox.vec
echo "-- options"
try predict m a --temperature 0
try predict m a --temperature -1
try predict m a --temperature warm
try predict m a --temperature 2000
try predict m a --top -1
try predict m a --json --format table
try predict m a --format picture
try predict m a --token x
try predict m a --token abc
try predict m a --token '#6'
try predict m a --token '#-1'
echo "-- texts"
try predict m xyz
try predict m ''
try predict m abcabcab --top 1 --format table
try predict m abcabcabc
try predict m ab xyz --top 1 --json | sed 's/"tokens".*}]}/../'
try predict m - </dev/null
printf 'a\0b\n' | try predict m -
printf 'ab\n\n' | try predict m - --top 0 --format table
echo "-- numbers"
rm m/vocab.json
try predict m 5,6
try predict m abc
try predict m 5 --token b
echo "-- a model with a row of NaN"
llama sick 6 8 '' nan=3
try predict sick 3
try predict sick 3 --json
