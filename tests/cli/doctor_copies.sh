# SPDX-License-Identifier: Apache-2.0
# Copies of table and head, equal and not, and a table stored twice.
. "$SOURCE/tests/cli/models.sh"
folder mtp '{"model_type":"deepseek_v3","tie_word_embeddings":false}'
make_model mtp/model.safetensors model.embed_tokens.weight:F32:6x4 lm_head.weight:F32:6x4:seed=1 \
    model.layers.61.embed_tokens.weight:F32:6x4 model.layers.61.shared_head.head.weight:F32:6x4:seed=2 \
    model.layers.62.embed_tokens.weight:BF16:6x4
try doctor mtp
folder twice '{"model_type":"qwen3","tie_word_embeddings":true}'
make_model twice/model.safetensors model.embed_tokens.weight:F32:6x4 lm_head.weight:F32:6x4
try doctor twice
try doctor twice --strict
