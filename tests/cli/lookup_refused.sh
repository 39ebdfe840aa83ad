# SPDX-License-Identifier: Apache-2.0
# A token that is not there is an error, and nothing is printed.
. "$SOURCE/tests/cli/models.sh"
fox
try lookup
try lookup fox.vec
try lookup missing.vec the
try lookup fox.vec cat
try lookup fox.vec 5
try lookup fox.vec '#12'
try lookup fox.vec the '#-1' quick --plain
try lookup fox.vec --ids 2,5,2147483648
try lookup fox.vec --ids 2,5,-9223372036854775808
try lookup fox.vec --ids 2,9223372036854775808
try lookup fox.vec --ids 2,x
try lookup fox.vec the --dim 9
try lookup fox.vec the --dim 0
try lookup fox.vec the --format xml
try lookup fox.vec the --json --format npy
try lookup fox.vec the --plain --json
try lookup fox.vec the --color sometimes
try get fox.vec the
make_model k.gguf text:general.architecture=llama tokens:a,b token_embd.weight:Q2_K:2x256
try lookup k.gguf a
make_model none.safetensors a.weight:F32:4x4 b.weight:F32:8x4
try lookup none.safetensors '#0'
try lookup none.safetensors::a.weight word
