# SPDX-License-Identifier: Apache-2.0
# By row number: the same, changed within and beyond a tolerance, of other dtypes, of other sizes.
. "$SOURCE/tests/cli/models.sh"
fox
try diff fox.vec fox.vec
embla convert fox.vec half.npy --dtype f16 --quiet >convert.txt
try diff fox.vec half.npy --top 2
try diff fox.vec half.npy --tolerance 0.001
try diff fox.vec half.npy --top 1 --json
printf '2 2\na 1 2\nb nan 1\n' >a.vec
printf '3 2\na 1 2\nb 3 1\nc 0 0\n' >b.vec
try diff a.vec b.vec --lenient --by-row
try diff b.vec a.vec --lenient --by-row --json
