# SPDX-License-Identifier: Apache-2.0
# No command overwrites a file that it reads, not even with --force.
cp -r "$SOURCE"/demo/{words.vec,village,village.txt,names,names.txt} .
mkdir texts
cp names.txt texts/a.txt
find . -type f | sort | xargs sha256sum >../before
try pack village village/model.safetensors --force
try pack village/model.safetensors ./village/config.json --force
try fit words.vec village.txt -o words.vec --force
try fit words.vec village.txt -o village.txt --force
try encode words.vec --file names.txt -o words.vec --force
try encode words.vec --file names.txt -o names.txt --force
try words village.txt -o village.txt --force
try words texts -o texts/a.txt --force
try tokenizer names.txt -o names.txt --force --size 300
try trace village t -o village/model.safetensors --force
try search words.vec village.txt cat --index words.vec
try search words.vec village.txt cat --index village.txt
try lookup words.vec cat -o texts/../words.vec --force
try lookup words.vec::vectors cat -o words.vec --force
try embed village t -o village/config.json --force
try map words.vec -o words.vec --format svg --force
try health words.vec --plot words.vec --force
try spectrum words.vec --plot words.vec --force
try convert words.vec words.vec --force
try new -o names.txt --words names.txt --dim 2 --force --to npy
try tokens names --compile names/tokenizer.json --force
sha256sum --quiet -c ../before && echo unchanged
# another file in the folder of a model may be replaced
embla lookup village t -o village/t.npy --format npy
try lookup village t -o village/t.npy --format npy --force
