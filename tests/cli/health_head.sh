# SPDX-License-Identifier: Apache-2.0
# Table and head of an untied model, padding, and what cannot be looked at.
. "$SOURCE/tests/cli/models.sh"
folder llama '{"model_type":"llama","vocab_size":32,"hidden_size":16,"tie_word_embeddings":false}'
make_model llama/model.safetensors model.embed_tokens.weight:BF16:32x16 lm_head.weight:BF16:32x16:seed=1
words 30 >llama/vocab.txt
try health llama --top 2
try health llama --head --top 2
try health llama::lm_head.weight --top 2 --json
try health llama::lm_head.weight --head
fox
try health fox.vec --head
