# SPDX-License-Identifier: Apache-2.0
# For programs: one object on each line. Scores, watched words, a plot, and a plan.
mask() { sed -E -e 's/"(seconds|words_per_second|memory)":[0-9.e+-]+/"\1":0/g' -e 's/"(loss|cosine|score)":-?[0-9.e+-]+/"\1":0/g'; }
cp "$SOURCE/demo/village.txt" "$SOURCE/demo/analogies.txt" .
printf 'king queen 9\ncat dog 8\nking cat 1\nsister bridge 1\n' >pairs.txt
embla words village.txt -o w.safetensors --clean words --epochs 2 --json --watch king,queen \
    --eval analogies.txt,pairs.txt --plot w.svg | mask
grep -c 'class="line a"' w.svg
# The speed is that of the steps alone. They are shorter here than saving the state before them.
head -c 3000 village.txt >short.txt
embla words short.txt -o s.safetensors --clean words --min-count 1 --epochs 1 --json |
    sed -n 's/.*"words_per_second":\([0-9]*\).*/\1/p' | sed 's/^[1-9][0-9]*$/a speed/'
embla words village.txt --clean words --subwords 3-6 --dry-run --json | mask
embla words village.txt --clean words --dry-run | sed -E 's/^(memory +)[0-9.]+ MB/\1M MB/'
embla words village.txt -o h.safetensors --clean words --epochs 2 --hogwild -q && embla near h.safetensors king --top 1 -q | wc -l
