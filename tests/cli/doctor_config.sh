# SPDX-License-Identifier: Apache-2.0
# Config against tensors: sizes, head, bias, positions, per-layer table.
. "$SOURCE/tests/cli/models.sh"
folder wrong '{"model_type":"gpt2","vocab_size":10,"n_embd":8,"n_positions":16,"tie_word_embeddings":false}'
make_model wrong/model.safetensors wte.weight:F32:12x4 wpe.weight:F32:8x4 lm_head.weight:F32:11x4 lm_head.bias:F32:12
try doctor wrong
folder nested '{"model_type":"gemma3n","text_config":{"vocab_size":12,"hidden_size":4,"vocab_size_per_layer_input":9,"tie_word_embeddings":true}}'
make_model nested/model.safetensors model.language_model.embed_tokens.weight:F32:12x4 \
    model.language_model.embed_tokens_per_layer.weight:F32:10x8
try doctor nested
folder bart '{"model_type":"bart","max_position_embeddings":16,"tie_word_embeddings":true}'
make_model bart/model.safetensors model.shared.weight:F32:6x4 model.encoder.embed_positions.weight:F32:18x4 \
    model.decoder.embed_positions.weight:F32:16x4 final_logits_bias:F32:1x6
try doctor bart
# no config and no known architecture: nobody says that a head is due
make_model bare.safetensors model.embed_tokens.weight:F32:6x4
try doctor bare.safetensors
folder said '{"tie_word_embeddings":false}'
cp bare.safetensors said/model.safetensors
try doctor said
# a config that cannot be read is worth a warning
folder broken '{"model_type":'
cp bare.safetensors broken/model.safetensors
try doctor broken
# three dimensions: naming the tensor would not help
make_model deep.safetensors a.weight:F32:2x3x4
try doctor deep.safetensors
try doctor deep.safetensors::a.weight
try info deep.safetensors
try lookup deep.safetensors '#0'
header="{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 2), }"
printf '\x93NUMPY\x01\x00\x76\x00%-117s\n\0\0\0\0\0\0\0\0' "$header" >deep.npy
try doctor deep.npy
