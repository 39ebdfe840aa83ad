# SPDX-License-Identifier: Apache-2.0
# The row numbers of a trace, as text, as integers, as tokens; and traces that are none.
rows='0 0 1 9 3 3 3 3'
echo "$rows" >rows.txt
tr ' ' ',' <rows.txt >commas.txt
for row in $rows; do printf "\\x$(printf %02x "$row")\0\0\0\0\0\0\0"; done >rows.i64
head=$(printf "%-117s" "{'descr': '<i4', 'fortran_order': False, 'shape': (9,), }")
{
    printf '\x93NUMPY\1\0\x76\0%s\n' "$head"
    for row in $rows 0; do printf "\\x$(printf %02x "$row")\0\0\0"; done
} >tokens.npy
for trace in rows.txt commas.txt rows.i64 tokens.npy; do
    embla plan --rows 16 --dim 4 --tokens 4 --trace $trace --ranks 1,2 | sed -n '/^ranks/,/^$/p'
done
# What embla trace writes, and files whose tokens do not fill blocks of 1,024: all of them are used.
head=$(printf "%-117s" "{'descr': '<i8', 'fortran_order': False, 'shape': (4, 2), }")
{ printf '\x93NUMPY\1\0\x76\0%s\n' "$head" && cat rows.i64; } >trace.npy
embla plan --rows 16 --dim 4 --tokens 4 --trace trace.npy --ranks 1,2 | sed -n '/^ranks/,/^$/p'
head=$(printf "%-117s" "{'descr': '<i4', 'fortran_order': False, 'shape': (1500,), }")
{ printf '\x93NUMPY\1\0\x76\0%s\n' "$head" && head -c 6000 /dev/zero; } >many.npy
{ printf '\x88\xd8\x34\1\1\0\0\0\xdc\5\0\0' && head -c 4012 /dev/zero; } >many.bin
for trace in many.npy many.bin; do
    embla plan --rows 16 --dim 4 --tokens 1500 --trace $trace --ranks 1 | sed -n '/^ranks/,/^$/p'
    try plan --rows 16 --dim 4 --tokens 1501 --trace $trace --ranks 1
done
head=$(printf "%-117s" "{'descr': '<f4', 'fortran_order': False, 'shape': (1500,), }")
{ printf '\x93NUMPY\1\0\x76\0%s\n' "$head" && head -c 6000 /dev/zero; } >floats.npy
echo '1 2 three' >words.txt
echo '1 2 16 3' >range.txt
: >empty.txt
head -c 13 rows.i64 >short.i64
for trace in floats.npy words.txt range.txt empty.txt short.i64 absent; do
    try plan --rows 16 --dim 4 --tokens 4 --trace $trace --ranks 2
done
try plan --rows 16 --dim 4 --tokens 400 --trace rows.txt
