# SPDX-License-Identifier: Apache-2.0
# What became of every row and every tensor.
. "$SOURCE/tests/cli/models.sh"
fox
try convert fox.vec fox.safetensors --dtype bf16
try info fox.safetensors
folder m '{"model_type":"llama","tie_word_embeddings":false}'
make_model m/model.safetensors model.embed_tokens.weight:F32:32x32:nan=3 lm_head.weight:BF16:32x32:seed=1 \
    model.norm.weight:F32:32 model.layers.0.up.weight:F32:8x32
try convert m all.safetensors --dtype q8_0
try convert m all.safetensors --dtype f16 --checksums
try convert m tables.safetensors --tables
try convert m again.safetensors --json
printf '4 2\na 70000 1\nb 1e-30 0\nc 1 2\nd 0 -0\n' >wide.vec
try convert wide.vec wide.safetensors --dtype f16
try convert wide.vec wider.safetensors --dtype f16 --json
