# SPDX-License-Identifier: Apache-2.0
# A table of a seed in every format; the numbers depend on seed, row, column and distribution alone.
. "$SOURCE/tests/cli/models.sh"
embla new -o t.safetensors --rows 100 --dim 8 --seed 42
embla lookup t.safetensors --ids 1,2,3
embla compare t.safetensors '#1' '#2' --format table
# the same numbers as examples/random.c
grep -m 1 '^row 1' "$SOURCE/examples/random.out"
embla new -o x.npy --rows 100 --dim 8 --seed 42 --init xavier
for file in t.gguf t.vec t.npy t.txt; do
    embla new -o $file --rows 100 --dim 8 --seed 42 -q | head -n 1
    embla diff t.safetensors $file -q >/dev/null && echo "$file: the same rows"
done
embla new -o t.bin --to word2vec-bin --rows 100 --dim 8 --seed 42 | head -n 1
# a smaller table has the same numbers where both have them
embla new -o small.npy --rows 4 --dim 8 --seed 42 --dtype f32 >/dev/null
embla lookup small.npy '#3' --plain
embla lookup t.npy '#3' --plain
# other dtypes, threads, JSON
embla new -o h.gguf --rows 10 --dim 32 --dtype q8_0 | head -n 2
embla new -o h.safetensors --rows 10 --dim 32 --dtype bf16 --threads 3 --json
embla new --rows 128,000 --dim 4,096 --dry-run -o huge.safetensors
try new --rows 128,000 --dim 4,096 --dtype bf16 --dry-run -o huge.safetensors --json
ls huge* 2>/dev/null
# words: as many rows as words, or more
printf 'cat\ndog\ntuesday\n' >words.txt
embla new -o w.safetensors --dim 4 --words words.txt
embla compare w.safetensors cat dog --format table
embla new -o w.vec --rows 5 --dim 4 --words words.txt
cut -d ' ' -f 1 w.vec
cp "$SOURCE/demo/names/tokenizer.json" .
embla new -o names.gguf --dim 32 --words tokenizer.json | grep words
embla lookup names.gguf e --dim 2 --plain
