# SPDX-License-Identifier: Apache-2.0
# The nearest lines, and the file that keeps their vectors.
cp "$SOURCE/demo/fox.vec" fox.vec
printf '%s\n' 'The quick brown fox.' 'A lazy dog, a fox!' '' 'unheard of' 'The	dog jumps over the fox' >lines.txt
try search fox.vec lines.txt 'lazy dogs and a dog' --top 2
ls
try search fox.vec lines.txt 'a quick fox' unheard 'the dog' --top 1
printf 'a quick fox\nthe dog\n' | try search fox.vec lines.txt --top 1 --json
echo '{"q": "a quick fox"}' | try search fox.vec lines.txt --top 1 --field q --threads 2
# It is made again when the corpus or the model is another.
echo 'brown fox' >>lines.txt
try search fox.vec lines.txt 'brown fox' --top 1
try search fox.vec lines.txt 'brown fox' --top 1
try fit fox.vec lines.txt -o fox.fit --components 1 --quiet
try search fox.vec lines.txt 'brown fox' --top 1 --fit fox.fit --quiet
try search fox.vec lines.txt 'brown fox' --top 1 --index half.embla --dtype f16
try convert half.embla::vectors half.npy --quiet
# What is wrong is said. A file that is no index is not replaced.
try search fox.vec
try search fox.vec missing.txt fox
try search fox.vec lines.txt fox --top 0
try search fox.vec lines.txt fox --dtype q8_0
try search fox.vec lines.txt fox --index counts.txt/x
cp lines.txt precious.txt
try search fox.vec lines.txt fox --index precious.txt
cmp lines.txt precious.txt
: >empty.txt
try search fox.vec empty.txt fox
echo unheard >other.txt
try search fox.vec other.txt fox
# A place that cannot be written is no reason not to answer.
cp lines.txt "$(printf '%0251d' 1).txt"
try search fox.vec "$(printf '%0251d' 1).txt" fox --top 1 | sed 's/0*1.txt/LONG.txt/g'
try search fox.vec lines.txt fox --top 1 --index nowhere/x
# Another dtype makes it again; a damaged one is not replaced.
rm lines.txt.embla
try search fox.vec lines.txt fox --top 1
try search fox.vec lines.txt fox --top 1 --dtype f16
try search fox.vec lines.txt fox --top 1 --dtype f16
# The vectors are under a checksum that --verify reads.
try search fox.vec lines.txt fox --top 1 --verify
try search fox.vec lines.txt fox --top 1 --verify --json --dtype f16
printf '\001' | dd of=lines.txt.embla bs=1 seek=$(($(wc -c <lines.txt.embla) - 3)) conv=notrunc 2>/dev/null
try search fox.vec lines.txt fox --top 1 --verify
echo corrupt >lines.txt.embla
try search fox.vec lines.txt fox --top 1
# Of equal lines one is shown, also if they are more than were asked for at first.
(yes 'the lazy dog' | head -n 50; echo 'the quick dog'; yes 'a fox' | head -n 50; echo 'the lazy dog') >repeated.txt
try search fox.vec repeated.txt 'lazy dog' --top 3
try search fox.vec repeated.txt 'lazy dog' fox --top 3 --distinct
try search fox.vec repeated.txt 'lazy dog' --top 200 --distinct --json
# With and without a fit: two indexes, and no word of another model.
embla search fox.vec repeated.txt fox --top 1 --fit fox.fit
embla search fox.vec repeated.txt fox --top 1
embla search fox.vec repeated.txt fox --top 1 --fit ./fox.fit
ls repeated.txt*
embla search fox.vec repeated.txt fox --top 1 --fit fox.fit --index repeated.txt.embla 2>&1 | sed 's/checksum.*; //'
