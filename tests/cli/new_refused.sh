# SPDX-License-Identifier: Apache-2.0
# What cannot be made is refused before anything is written; what is there stays.
. "$SOURCE/tests/cli/models.sh"
try new
try new -o t.npy
try new -o t.npy --rows 5
try new -o t.npy --dim 5
try new -o - --rows 5 --dim 5
try new t.npy --rows 5 --dim 5
try new -o t.npy --rows 0 --dim 5
try new -o t.npy --rows 5 --dim 0
try new -o t.npy --rows 5 --dim x
try new -o t.npy --rows 9223372036854775807 --dim 8
try new -o t.npy --rows 9223372036854775807 --dim 1 --dry-run
try new -o t.npy --rows 2 --dim 9223372036854775807
try new -o t.npy --rows 1099511627776 --dim 1048576 2>&1 | sed -E 's/only .* is available \([^)]*\)/only SOME is available (WHY)/'
try new -o t.npy --rows 5 --dim 2097152
try new -o t.npy --rows 5 --dim 5 --init zeros
try new -o t.npy --rows 5 --dim 5 --dtype q9
try new -o t.gguf --rows 5 --dim 5 --dtype q8_0
try new -o t.gguf --rows 5 --dim 256 --dtype q4_k
try new -o t.npy --rows 5 --dim 32 --dtype q8_0
try new -o t.unknown --rows 5 --dim 5
try new -o t.bin --rows 5 --dim 5
try new -o missing/t.npy --rows 5 --dim 5
printf 'a\nb\nc\n' >words.txt
try new -o t.npy --rows 2 --dim 5 --words words.txt
try new -o t.npy --dim 5 --words missing.txt
: >empty.txt
try new -o t.npy --dim 5 --words empty.txt
echo kept >kept.npy
try new -o kept.npy --rows 5 --dim 5
cat kept.npy
mkdir folder.npy
try new -o folder.npy --rows 5 --dim 5 --force
ln -s kept.npy link.npy
try new -o link.npy --rows 5 --dim 5 --force
try new -o kept.npy --rows 5 --dim 5 --force | tail -n 1
try init
ls
try new -o x.bin --rows 3 --dim 2 --to llm.c
