# SPDX-License-Identifier: Apache-2.0
# Rows and tokens: too few rows, padding, and a GGUF that must have as many.
. "$SOURCE/tests/cli/models.sh"
folder few '{"model_type":"llama","vocab_size":20,"tie_word_embeddings":true}'
make_model few/model.safetensors model.embed_tokens.weight:F32:20x4
{ words 20 t; echo '<fill> it'; printf '\\t\n'; printf '\xe2\x80\xae\n'; words 12 more; } >few/vocab.txt
try doctor few
folder json '{"model_type":"llama","tie_word_embeddings":true}'
make_model json/model.safetensors model.embed_tokens.weight:F32:4x4
echo '{"a":0,"b":1,"c":' >json/vocab.json
try doctor json
make_model padded.gguf text:general.architecture=llama tokens:a,b,c token_embd.weight:F32:4x4
try doctor padded.gguf
try doctor padded.gguf --json
