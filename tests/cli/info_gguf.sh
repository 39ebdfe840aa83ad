# SPDX-License-Identifier: Apache-2.0
# GGUF: the vocabulary inside, a type that no table can be made of, a vocabulary alone.
. "$SOURCE/tests/cli/models.sh"
make_model t.gguf text:general.architecture=llama number:llama.embedding_length=32 tokens:a,b,c,d \
    token_embd.weight:Q8_0:4x32 output_norm.weight:F32:32
try info t.gguf
make_model k.gguf text:general.architecture=llama tokens:a,b token_embd.weight:Q4_K:2x256 output.weight:F16:2x256
try info k.gguf
make_model vocab.gguf text:general.architecture=gpt2 tokens:a,b,c
try info vocab.gguf
try info vocab.gguf --json
