# SPDX-License-Identifier: Apache-2.0
# Text where tokens are expected: the tokenizer of the model cuts it, or the one of --tokenizer.
. "$SOURCE/tests/cli/generate_model.sh"
. "$SOURCE/tests/cli/tokenizers.sh"
bert
folder m2v '{"model_type": "model2vec", "normalize": true}'
make_model m2v/model.safetensors embeddings:F32:10x4
cp bert.json m2v/tokenizer.json
make_model bare.safetensors wte.weight:F32:10x4

echo "-- words first, then text; each token has a row"
try lookup m2v 'Unaffable cafe!' --plain
try lookup m2v cafe '#3' 'a cafe' --plain
try embed m2v 'a cafe' --positions sinusoidal --format text
printf 'a!\ncafe\n' | embla lookup m2v - --plain --quiet
echo "-- a mistyped word is noted, unless quiet"
try lookup m2v unaffable --plain --dim 1
try lookup m2v unaffable --plain --dim 1 --quiet
try lookup m2v zzz
echo "-- a text of several tokens has one list; its vector is that of encode"
try near m2v 'Unaffable cafe!' a --top 2
try near m2v 'Unaffable cafe!' --top 2 --format table
embla near m2v 'Unaffable cafe!' --top 3 --json
echo "$(embla encode m2v 'Unaffable cafe!')" | embla near m2v --vector - --top 2
printf 'a cafe\ncafe\n' | embla near m2v - --top 1
echo "-- a table without words: --tokenizer gives text and names"
try near bare.safetensors 'a cafe'
try near bare.safetensors 'a cafe' --tokenizer bert.json --top 2
try lookup bare.safetensors 'a cafe' --tokenizer bert.json --plain --dim 1
try lookup bare.safetensors a --tokenizer missing.json
make_model short.safetensors wte.weight:F32:5x4
try lookup short.safetensors 'a cafe' --tokenizer bert.json --plain
echo "-- a word-vector file has none"
fox
try near fox.vec 'the quick'
echo "-- rows of a giant table"
make_model giant g
try rows g 'a cafe' --tokenizer bert.json --quiet
try rows --model engram-demo 5 --tokenizer bert.json
echo "-- generate: the prompt is cut by the tokenizer, and tokens are joined by it"
llama named 10 32
cp bert.json named/tokenizer.json
try generate named 'Unaffable cafe!' --tokens 0
embla generate named 'Unaffable cafe!' --tokens 6 --json | timeless
llama bare 10 32
embla generate bare 'Unaffable cafe!' --tokens 6 --json --tokenizer bert.json | timeless
try generate bare 'Unaffable cafe!'
bytes
llama small 200 32
try generate small 'ש' --tokenizer bytes.json
