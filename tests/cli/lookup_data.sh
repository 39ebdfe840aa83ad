# SPDX-License-Identifier: Apache-2.0
# Every other format, and that its numbers are exact.
. "$SOURCE/tests/cli/models.sh"
fox
try lookup fox.vec the . --plain
try lookup fox.vec the . --format text --dim 2
try lookup fox.vec the . --format tsv --dim 2
try lookup fox.vec the . --json --dim 2
try lookup fox.vec the . --format jsonl --dim 2
embla lookup fox.vec the . --format npy --dim 2 | od -An -c
embla lookup fox.vec the . --format raw --dim 2 | od -An -tx1
embla lookup fox.vec the . --format npy -o two.npy && embla info two.npy
embla lookup two.npy '#0' '#1' --plain >again
embla lookup fox.vec the . --plain | cut -f3 | diff - <(cut -f3 again) && echo "the same numbers"
printf '2 2\nn nan 1\ni -inf 2\n' >odd.vec
try lookup odd.vec n i --plain
try lookup odd.vec n i --json
make_model half.safetensors a.weight:F16:3x4 b.weight:F16:3x4
try lookup half.safetensors::b.weight --ids 2 --plain
