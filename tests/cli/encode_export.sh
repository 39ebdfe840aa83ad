# SPDX-License-Identifier: Apache-2.0
# Formats of vector databases.
cp "$SOURCE/demo/fox.vec" fox.vec
printf 'A fox\nback\\slash\tfox\ndog \xff\n' >lines.txt
try encode fox.vec --file lines.txt --format sql
embla encode fox.vec --file lines.txt --format fvecs -o out.fvecs
embla encode fox.vec --file lines.txt --format raw -o out.raw
wc -c out.fvecs out.raw | sed 's/^ *//'
od -A d -t d4 -N 4 out.fvecs | head -1
# each vector has its dim before it
for i in 0 1 2; do
    dd if=out.fvecs bs=1 skip=$((i * 36 + 4)) count=32 2>dd.err
done | cmp - out.raw
embla lookup fox.vec fox dog --format fvecs | wc -c
