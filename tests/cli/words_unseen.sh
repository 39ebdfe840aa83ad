# SPDX-License-Identifier: Apache-2.0
# A word that the text does not have gets the mean of its n-grams, from our file and from fastText's.
cp "$SOURCE/demo/village.txt" .
embla words village.txt -o w.safetensors --clean words --epochs 30 --subwords 3-5 --buckets 50000 -q
embla near w.safetensors kings king --top 1 --format text -q | cut -f 2
embla near w.safetensors kings --top 1 --format table | head -n 1
printf 'kings\nqueen\n' | embla near w.safetensors - --top 1 -q | wc -l
embla near w.safetensors kings --top 1 --json | grep -o '"token":"kings","id":null,"row":null'
embla lookup w.safetensors kings king --format text --dim 2 | cut -f 1,2
embla lookup w.safetensors kings --json --dim 1 | grep -o '"id":null,"row":null,"token":"kings"'
embla lookup w.safetensors kings --format npy | wc -c
embla lookup w.safetensors kings | cut -f 2
# without n-grams it is an unknown word, as before
embla words village.txt -o plain.safetensors --clean words --epochs 1 -q
try near plain.safetensors kings
