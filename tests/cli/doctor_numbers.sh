# SPDX-License-Identifier: Apache-2.0
# NaN and zero rows, zero rows that are padding, a type that cannot be decoded.
. "$SOURCE/tests/cli/models.sh"
folder nan '{"model_type":"gpt2","tie_word_embeddings":true}'
make_model nan/model.safetensors wte.weight:BF16:6x4:nan=2 wpe.weight:F16:8x4:nan=7
words 6 >nan/vocab.txt
try doctor nan
folder zero '{"model_type":"gpt2","tie_word_embeddings":true}'
make_model zero/model.safetensors wte.weight:F32:6x4:zero=5
words 5 >zero/vocab.txt
try doctor zero
printf '4 2\na 0 0\nb 1 2\nc 0 0\nd -0 0\n' >zeros.vec
try doctor zeros.vec
try doctor zeros.vec --strict
make_model k.gguf text:general.architecture=llama tokens:a,b token_embd.weight:Q2_K:2x256
try doctor k.gguf
