# SPDX-License-Identifier: Apache-2.0
# Rows, positions and their sum, in a picture and in every format of data.
. "$SOURCE/tests/cli/models.sh"
cp -r "$SOURCE/demo/names" "$SOURCE/demo/words.vec" .
embla embed names e m m a
LC_ALL=C.UTF-8 embla embed names e m m a --first-position 2
embla embed names e m m a --positions sinusoidal
embla embed names e --positions none
embla embed names e --positions none -q
COLUMNS=60 embla embed names e m m a
COLUMNS=45 embla embed names e m m a -q
COLUMNS=40 embla embed names e m m a -q
COLUMNS=34 embla embed names e m -q --dim 2
COLUMNS=25 embla embed names e m -q --dim 3
embla embed names e m -q --dim 2
embla embed names --ids 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15 -q
embla embed names e m --color always -q
# the sum is the sum of its parts, which lookup prints too
for part in rows positions sum; do embla embed names e --first-position 2 --part $part --dim 2 --plain; done
embla lookup names e --dim 2 --plain
embla lookup names::wpe '#2' --dim 2 --plain -q
embla embed names e m --dim 2 --format tsv
try embed names e m --dim 2 --json
try embed names e --dim 2 --positions sinusoidal --json
embla embed names e m --dim 2 --format jsonl
embla embed names e m --dim 2 --format npy | tail -c +129 | od -A n -t f4
embla embed names e m --dim 2 --format raw | od -A n -t f4
embla embed names e m --dim 2 --plain -o out.txt && cat out.txt
# a table without positions, and computed ones: sin(1), cos(1) at position 1
embla embed words.vec king queen -q
embla embed words.vec king queen --positions sinusoidal --part positions --dim 4 --plain
embla embed words.vec king --positions sinusoidal --first-position 1 --part positions --dim 4 --plain
printf 'e\nm\n' | embla embed names - --dim 1 --plain
