# SPDX-License-Identifier: Apache-2.0
# Folders with config.json: roles, ties, padding, positions, scaling, shards.
. "$SOURCE/tests/cli/models.sh"
folder llama '{"model_type":"llama","vocab_size":32,"hidden_size":16,"tie_word_embeddings":false}'
make_model llama/model.safetensors model.embed_tokens.weight:BF16:32x16 lm_head.weight:BF16:32x16:seed=1 \
    model.layers.0.mlp.up_proj.weight:BF16:64x16 model.norm.weight:F32:16
words 30 >llama/vocab.txt
try info llama
try info llama --all
try info llama --json

folder gpt2 '{"model_type":"gpt2","vocab_size":5,"n_embd":4,"n_positions":8}'
make_model gpt2/model.safetensors wte.weight:F32:5x4 wpe.weight:F32:8x4
words 5 >gpt2/vocab.txt
try info gpt2
try info gpt2/model.safetensors::wpe.weight

folder opt '{"model_type":"opt","tie_word_embeddings":true}'
make_model opt/model.safetensors model.decoder.embed_tokens.weight:F16:32x16 \
    model.decoder.embed_positions.weight:F16:66x16
try info opt

folder gemma '{"model_type":"gemma3n","text_config":{"tie_word_embeddings":true}}'
make_model gemma/model.safetensors model.language_model.embed_tokens.weight:BF16:64x8 \
    model.language_model.embed_tokens_per_layer.weight:BF16:60x16
words 63 >gemma/vocab.txt
try info gemma

folder shards '{"model_type":"qwen3","tie_word_embeddings":true}'
make_model shards/a.safetensors model.embed_tokens.weight:F32:6x4
make_model shards/b.safetensors lm_head.weight:F32:6x4 model.norm.weight:F32:4
echo '{"metadata":{},"weight_map":{"model.embed_tokens.weight":"a.safetensors",
"lm_head.weight":"b.safetensors","model.norm.weight":"b.safetensors"}}' >shards/model.safetensors.index.json
try info shards
