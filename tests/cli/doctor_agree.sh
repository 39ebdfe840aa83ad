# SPDX-License-Identifier: Apache-2.0
# All parts agree: nothing but fine, exit 0.
. "$SOURCE/tests/cli/models.sh"
fox
try doctor fox.vec
folder llama '{"model_type":"llama","vocab_size":32,"hidden_size":16,"tie_word_embeddings":false}'
make_model llama/model.safetensors model.embed_tokens.weight:BF16:32x16 lm_head.weight:BF16:32x16:seed=1
words 30 >llama/vocab.txt
try doctor llama
try doctor llama --strict --json
folder roberta '{"model_type":"roberta","architectures":["RobertaModel"],"vocab_size":9,"hidden_size":4,"max_position_embeddings":34}'
make_model roberta/model.safetensors embeddings.word_embeddings.weight:F32:9x4 \
    embeddings.position_embeddings.weight:F32:34x4 embeddings.token_type_embeddings.weight:F32:1x4
try doctor roberta
folder opt '{"model_type":"opt","vocab_size":9,"hidden_size":8,"word_embed_proj_dim":4,"max_position_embeddings":32,"tie_word_embeddings":true}'
make_model opt/model.safetensors model.decoder.embed_tokens.weight:F32:9x4 \
    model.decoder.embed_positions.weight:F32:34x8
try doctor opt
