# SPDX-License-Identifier: Apache-2.0
# What an architecture does with a row: a factor, and rows before position 0.
. "$SOURCE/tests/cli/models.sh"
folder opt '{"model_type":"opt"}'
make_model opt/model.safetensors model.decoder.embed_tokens.weight:F32:9x4 \
    model.decoder.embed_positions.weight:F32:10x4:seed=2
embla embed opt '#1' '#2'
try embed opt '#1' --json
try embed opt --ids 0,1,2,3,4,5,6,7 -q
try embed opt --ids 0,1,2,3,4,5,6,7,8
folder gemma '{"model_type":"gemma2","rope_theta":10000.0}'
make_model gemma/model.safetensors model.embed_tokens.weight:F32:9x4
embla embed gemma '#1' '#2'
embla embed gemma '#1' '#2' --positions sinusoidal
embla embed gemma '#1' --part rows --plain
embla lookup gemma '#1' --plain
folder roberta '{"model_type":"roberta","pad_token_id":1}'
make_model roberta/model.safetensors embeddings.word_embeddings.weight:F32:9x4 \
    embeddings.position_embeddings.weight:F32:6x4:seed=2 embeddings.token_type_embeddings.weight:F32:1x4
embla embed roberta '#1' '#2' --first-position 2
try embed roberta '#1' '#2' --first-position 3
# a mapping of tokens to rows
mkdir m
make_model m/model.safetensors embeddings:F32:4x3 mapping:I32:10:mod=4 weights:F32:10
words 10 >m/vocab.txt
embla embed m w6 w2 --positions sinusoidal
# positions of another dim cannot be added
folder narrow '{"model_type":"opt"}'
make_model narrow/model.safetensors model.decoder.embed_tokens.weight:F32:9x4 \
    model.decoder.embed_positions.weight:F32:10x8
try embed narrow '#1'
try embed narrow '#1' --positions none -q
