# SPDX-License-Identifier: Apache-2.0
# --with: the same tokens in two tables, whose dims may differ.
. "$SOURCE/tests/cli/models.sh"
printf '3 2\na 3 4\nb 4 3\nc -3 4\n' >one.vec
printf '4 2\nx 9 9\nc -3 4\nb 5 0\na 3 4\n' >two.vec
printf '3 3\na 1 0 0\nb 0 1 0\nc 1 1 0\n' >wide.vec
embla compare one.vec a b c --with two.vec --format table
embla compare one.vec a --with two.vec --format table
embla compare one.vec a b c --with wide.vec --format table
embla compare one.vec a b --with two.vec
embla compare one.vec a b --with wide.vec
try compare one.vec a b --with two.vec --json
try compare one.vec a b --with wide.vec --json
# by word, also for a token that was given by its number; by number where a table has no words
embla compare one.vec '#0' '#1' --with two.vec
make_model bare.safetensors a.weight:F32:4x2
embla compare one.vec a b --with bare.safetensors -q
# a table and the head of one model
folder g '{"model_type":"gpt2"}'
make_model g/model.safetensors wte.weight:F32:4x2 lm_head.weight:F32:4x2:seed=1
embla compare g '#1' --with g::lm_head.weight --format table
# what cannot be
try compare one.vec a --with wide.vec
try compare one.vec a --with missing.vec
try compare one.vec b c --with fox.vec
printf '2 2\na 1 1\nz 1 1\n' >other.vec
try compare one.vec a b --with other.vec
try compare one.vec '#2' a --with bare.safetensors::b
