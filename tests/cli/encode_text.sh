# SPDX-License-Identifier: Apache-2.0
# Text to vectors, in every format.
. "$SOURCE/tests/cli/models.sh"
. "$SOURCE/tests/cli/tokenizers.sh"
bert
folder m2v '{"model_type": "model2vec", "normalize": true}'
make_model m2v/model.safetensors embeddings:F32:10x4
cp bert.json m2v/tokenizer.json
folder st '{}'
rm st/config.json
echo '{}' >st/config_sentence_transformers.json
make_model st/model.safetensors embedding.weight:F32:10x4
cp bert.json st/tokenizer.json

try encode m2v 'Unaffable cafe!' a
try encode m2v 'Unaffable cafe!' --no-normalize
try encode st 'Unaffable cafe!' --format tsv
try encode st 'Unaffable cafe!' --normalize --dim 2
try encode m2v 'a zzz!' '' --json
try encode st 'a zzz!' --json
try encode m2v 'a zzz!' --format jsonl --compat st
folder folded '{"model_type": "model2vec"}'
make_model folded/model.safetensors embeddings:F32:10x4 weights:F32:10
cp bert.json folded/tokenizer.json
try encode folded 'a zzz!' --format jsonl --compat st
try encode folded 'a zzz!' --format jsonl --compat st5
try encode m2v 'a a a' 'a!' --max-tokens 2 --overflow truncate --dim 1
try encode m2v 'a a a' 'a!' --max-tokens 2 --overflow truncate --dim 1 --quiet
try encode m2v '[CLS] a' --json --plain --dim 1
printf 'a!\r\n\nunaffable' >lines.txt
try encode m2v --file lines.txt
try encode m2v <lines.txt
printf '%s\n' '{"id": [1, {"text": "}"}], "text": "a!"}' '{"text": "\u0075naff\u0061ble \"\ud83d\ude00"}' >lines.jsonl
try encode m2v --file lines.jsonl --field text --format jsonl --dim 1
embla encode m2v a 'a!' --format raw | od -An -tx1
embla encode m2v a 'a!' --format npy -o out.npy
head -c 128 out.npy | tail -c +11 | tr -s ' '
tail -c +129 out.npy | od -An -tx1
try encode m2v a --format npy -o out.npy
cp bert.json its.json
make_model word.safetensors embedding.weight:F32:8x4
try encode word.safetensors 'a!' --tokenizer its.json --json
for threads in 1 2; do
    for i in $(seq 1 3000); do echo "unaffable a $i !"; done |
        embla encode m2v --threads $threads --format raw | cksum
done
