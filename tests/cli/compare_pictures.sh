# SPDX-License-Identifier: Apache-2.0
# Two rows as arrows, more as a matrix of cells.
. "$SOURCE/tests/cli/models.sh"
. "$SOURCE/tests/cli/pictures.sh"
five
cp "$SOURCE/demo/words.vec" .
embla compare five.vec '#0' '#2' -o pair.svg && texts pair.svg
grep -c '<path class="head' pair.svg
embla compare words.vec cat dog tuesday -o three.svg && texts three.svg
embla compare words.vec cat dog tuesday --measure angle -o angle.svg && texts angle.svg | tail -n 1
embla compare words.vec cat dog tuesday --measure euclidean -o far.svg && texts far.svg | tail -n 1
# the same row, opposite rows, a right angle, a row of zeros, very large and very small numbers
printf '6 2\na 3 4\nb -3 -4\nc -4 3\nzero 0 0\nhuge 3e37 4e37\ntiny 3e-30 4e-30\n' >odd.vec
for pair in 'a a' 'a b' 'a c' 'a zero' 'huge tiny'; do
    embla compare odd.vec $pair -o pair.svg --force && texts pair.svg | tail -n 1
done
embla compare odd.vec a b c zero huge tiny -o odd.svg && texts odd.svg | tail -n 1
embla compare words.vec cat dog -o two.json && cat two.json
embla compare words.vec cat dog --format json | cmp - two.json && echo "the same JSON"
embla compare words.vec cat dog -o two.txt && cat two.txt
embla compare words.vec cat dog -o two.html && grep -o '<h1>.*</h1>' two.html
embla compare words.vec $(seq -f '#%.0f' 0 23) -o most.svg && texts most.svg | sed -n 1p
try compare words.vec $(seq -f '#%.0f' 0 24) -o more.svg
try compare words.vec cat dog --with words.vec -o with.svg
try compare words.vec cat dog -o two.txt
try compare words.vec cat dog -o words.vec --force
ls
