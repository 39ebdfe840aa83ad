# SPDX-License-Identifier: Apache-2.0
# What is wrong is said.
. "$SOURCE/tests/cli/models.sh"
. "$SOURCE/tests/cli/tokenizers.sh"
bert
folder m2v '{"model_type": "model2vec"}'
make_model m2v/model.safetensors embeddings:F32:10x4
try encode
try encode missing a
try encode m2v a
cp bert.json m2v/tokenizer.json
try encode m2v a --dim 5
try encode m2v a --dim 0
try encode m2v a --compat other
try encode m2v a --format picture
try encode m2v a --json --format raw
try encode m2v a --normalize --no-normalize
try encode m2v a --overflow truncate
try encode m2v a 'a a a' --max-tokens 2
printf 'a\xff' | try encode m2v --strict
try encode m2v --file missing.txt
printf '%s\n' '{"text": "a"}' '{"title": "a"}' >lines.jsonl
try encode m2v --file lines.jsonl --field text
for line in '["a"]' '{"text": 5}' '{"text": "a' '{"text": "\x"}' '{"text": "\u12"}' '{"a": [1, 2' '{}'; do
    echo "$line" | try encode m2v --field text
done
make_model m2v/model.safetensors embeddings:F32:9x4
try encode m2v a
make_model m2v/model.safetensors embeddings:F32:3x4 mapping:I32:10:mod=3 weights:F32:9
try encode m2v a
make_model m2v/model.safetensors embeddings:F32:3x4 mapping:I32:10:mod=3 weights:I32:10:mod=3
try encode m2v a
cp "$SOURCE/demo/fox.vec" fox.vec
try encode fox.vec fox
