# SPDX-License-Identifier: Apache-2.0
# Words from a text: what is printed, the files, and the same bytes for any number of threads.
mask() { sed -E -e 's/[0-9,]+ words\/s/N words\/s/' -e 's/in [0-9.]+ s/in T s/' -e 's/(loss) [0-9.]+/\1 L/' \
    -e 's/(-[a-z]+) [0-9.]+/\1 C/g' -e 's/^(memory +)[0-9.]+ MB/\1M MB/'; }
text=$SOURCE/demo/village.txt
cp "$text" village.txt
embla words village.txt -o a.safetensors --clean words --epochs 3 --watch king,queen,cat | mask
embla info a.safetensors | sed -n '/role/,/vocabulary/p'
for threads in 1 2 3 8; do
    embla words village.txt -o b.safetensors --clean words --epochs 3 --threads $threads --force -q
    cmp a.safetensors b.safetensors && echo "the same with $threads threads"
done
embla words - -o c.safetensors --clean words --epochs 3 -q <village.txt && cmp a.safetensors c.safetensors && echo "the same from standard input"
gzip -k village.txt
embla words village.txt.gz -o d.safetensors --clean words --epochs 3 -q && cmp a.safetensors d.safetensors && echo "the same from gzip"
mkdir folder && cp village.txt folder/
embla words folder -o e.safetensors --clean words --epochs 3 -q && cmp a.safetensors e.safetensors && echo "the same from a folder"
embla words village.txt -o f.vec --clean words --epochs 3 -q
head -n 1 f.vec
cut -d ' ' -f 1 f.vec | sed -n '2,6p'
embla words village.txt -o g.bin --clean words --epochs 3 -q
cmp <(embla lookup f.vec king --format text) <(embla lookup g.bin king --format text) && echo "the same rows"
ls
embla words village.txt -o sample.vec --sample 0 --epochs 1 --dim 2 | grep training
