# SPDX-License-Identifier: Apache-2.0
# Model2Vec: a tensor says which row belongs to a token.
. "$SOURCE/tests/cli/models.sh"
mkdir m
make_model m/model.safetensors embeddings:F32:4x3 mapping:I32:10:mod=4 weights:F32:10
words 10 >m/vocab.txt
embla lookup m w6 w2 w9
try lookup m w6 w2 --json
try lookup m w6 --plain
try lookup m '#10'
try lookup m --ids 1,4294967296
make_model m/model.safetensors embeddings:F32:4x3 mapping:I64:10 weights:F32:10
try lookup m w6
try doctor m
make_model m/model.safetensors embeddings:F32:4x3 mapping:I64:8:mod=4 weights:F32:9
try doctor m
