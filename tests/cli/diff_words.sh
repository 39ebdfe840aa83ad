# SPDX-License-Identifier: Apache-2.0
# By word: rows in another order, rows that only one has, spelled by any bytes.
. "$SOURCE/tests/cli/models.sh"
fox
{ echo 12 8; tail -n +2 fox.vec | sort -r; } >turned.vec
try diff fox.vec turned.vec
try diff fox.vec turned.vec --by-row --top 1
{ echo 12 8; tail -n +2 fox.vec | sed 's/^fox /\x1b[1mfox /; s/^red .*/red 1 0 0 0 0 0 0 0/'; } >other.vec
try diff fox.vec other.vec --quiet
try diff fox.vec other.vec --quiet --json
embla convert fox.vec plain.npy --quiet >convert.txt
rm -f plain.vocab.txt
try diff fox.vec plain.npy --by-word
