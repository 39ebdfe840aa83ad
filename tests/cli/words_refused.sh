# SPDX-License-Identifier: Apache-2.0
# Wrong arguments, and texts without words.
printf 'a b a b a c\n' >text
: >empty
printf 'one two three\n' >rare
try words text
try words -o x
try words text -o x.safetensors --dim 0
try words text -o x.safetensors --dim 100000
try words text -o x.safetensors --dim 0.5
try words text -o x.safetensors --window 51
try words text -o x.safetensors --negatives 64
try words text -o x.safetensors --epochs 2000000
try words text -o x.safetensors --max-words 1000000000000
try words text -o x.safetensors --buckets 3000000000 --subwords 3-6
try words text -o x.safetensors --sample 2
try words text -o x.safetensors --rate 11
try words text -o x.safetensors --rate -1
try words text -o x.safetensors --rate much
try words text -o x.safetensors --subwords 6
try words text -o x.safetensors --subwords 6-3
try words text -o x.safetensors --buckets 10
try words text -o x.safetensors --hogwild --subwords 3-6
try words text -o x.safetensors --kind glove
try words text -o x.safetensors --eval nothing.txt
try words text -o x.safetensors --plot x.png
try words text -o x.safetensors --min-count 1 --watch a
try words text -o x.safetensors --min-count 1 --watch a,zebra
try words empty -o x.safetensors
try words rare -o x.safetensors
try words missing -o x.safetensors
try words text -o nowhere/x.safetensors --min-count 1
try words text -o x.pt --min-count 1
cp "$SOURCE/demo/village.txt" .
try words village.txt -o w.vec --rate 10 --epochs 3 -q # the rows diverge
try words village.txt -o y.vec --subwords 3-4 --dim 4 --epochs 1 | grep note
rm y.vec
echo >y.safetensors
try words text -o y.safetensors --min-count 1
ls
