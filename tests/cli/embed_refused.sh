# SPDX-License-Identifier: Apache-2.0
# A token or a position that is not there is an error, and nothing is printed.
. "$SOURCE/tests/cli/models.sh"
fox
cp -r "$SOURCE/demo/names" .
try embed
try embed names
try embed missing e
try embed names E
try embed names '#27'
try embed names --ids 26,27 --plain
try embed names a b c d e f g h i j k l m n o p q
try embed names a b --first-position 15
try embed names a --first-position 16
try embed names a --first-position 9223372036854775807
try embed names a --first-position -1
try embed names a --first-position x
try embed fox.vec the --positions learned
try embed fox.vec the --first-position 1
try embed fox.vec the --positions sinusoidal --first-position 9007199254740993
try embed names a --positions alibi
try embed names a --part head --plain
try embed names a --part rows
try embed names a --dim 17
try embed names a --dim 0
try embed names a --json --format npy
try embed names a --plain --json
try embed names a -o names/model.safetensors --plain --force
echo kept >kept
try embed names a -o kept --plain
cat kept
try embed names --ids 2147483648
make_model k.gguf text:general.architecture=llama tokens:a,b token_embd.weight:Q2_K:2x256
try embed k.gguf a
