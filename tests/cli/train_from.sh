# SPDX-License-Identifier: Apache-2.0
# Models that begin with the weights of another, in bf16, and beside an n-gram table.
seq 300 >numbers.txt
shape=(--layers 1 --heads 2 --dim 16 --length 8 --batch 2 --threads 1)
loss() { grep -oE '^(loss|validation) +[0-9.]+' "$1"; }
embla train numbers.txt -o a "${shape[@]}" --steps 20 >a.out
loss a.out | wc -l
# no step: the same numbers
embla train numbers.txt -o b --from a --steps 0 -q >b.out
cmp a/model.safetensors b/model.safetensors && echo "the same"
cmp <(loss a.out | tail -n 1) <(loss b.out) && echo "the same validation"
embla train numbers.txt -o e "${shape[@]}" --steps 20 --bf16 | grep -c 'products in bf16'
# bytes, and a file of tokens
embla train numbers.txt -o bytes "${shape[@]}" --steps 2 --bytes | grep -o 'table [0-9]* x 16'
embla info bytes | grep vocabulary
printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' \
    "{'descr': '<u2', 'fortran_order': False, 'shape': (600,), }" >t.npy
for i in {1..100}; do printf '\1\0\2\0\3\0\4\0\5\0\6\0'; done >>t.npy
embla train t.npy -o tokens "${shape[@]}" --steps 2 --tokens-file | grep -o '[0-9]* tokens, vocabulary of [0-9]*'
ls tokens
# an n-gram table beside it
embla train numbers.txt -o grams "${shape[@]}" --steps 20 --ngram-rows 1000 --ngram-orders 2,3 |
    grep -E '^(n-grams|next)'
embla train --resume grams --steps 25 | grep '^next'
embla train numbers.txt -o more --from a --ngram-rows 100 --steps 2 -q | grep '^next'
