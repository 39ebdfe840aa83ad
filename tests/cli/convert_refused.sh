# SPDX-License-Identifier: Apache-2.0
# What is there is not replaced unasked, the input never; nothing half-written stays.
. "$SOURCE/tests/cli/models.sh"
fox
try convert
try convert fox.vec
try convert missing.vec out.npy
try convert fox.vec out.unknown
try convert fox.vec fox.vec
try convert fox.vec fox.vec --force
ln -s fox.vec link.vec
try convert fox.vec link.vec --force
echo old >out.npy
try convert fox.vec out.npy
cat out.npy
try convert fox.vec missing/out.npy
try convert fox.vec out.npy --dtype q9
try convert fox.vec out.gguf --dtype q4_k
try convert fox.vec out.safetensors --dtype f4_e2m1
try convert fox.vec out.npy --dtype q8_0 --force
cat out.npy
try convert fox.vec -
mkdir folder.npy
try convert fox.vec folder.npy
try convert fox.vec /dev/null --to npy
try convert fox.vec out.safetensors --dtype i8
echo mine >w.vocab.txt
try convert fox.vec w.npy --force
cat w.vocab.txt
try export fox.vec out.npy
ls
# words that another file shares are not replaced
try convert fox.vec shared.npy -q
head -n 4 fox.vec | sed '1s/.*/3 8/' >three.vec
try convert three.vec shared.safetensors --force
wc -l <shared.vocab.txt
