# SPDX-License-Identifier: Apache-2.0
# What cannot be: no file is written, and one that is there stays.
. "$SOURCE/tests/cli/models.sh"
fox
try map
try map fox.vec
try map fox.vec -o fox
try map fox.vec -o fox.pdf
try map missing.vec -o fox.html
try map fox.vec -o fox.html --color size
try map fox.vec -o fox.html --theme blue
try map fox.vec -o fox.html --size 100x100
for size in 480x360 1600 x 1600x 1600x1200x 99999x9 16000x16000 -5x300; do try map fox.vec -o fox.svg --size=$size; done
try map fox.vec -o fox.svg --neighbours 3
try map fox.vec -o fox.html --neighbours 101
try map fox.vec -o fox.html --rows 0
try map fox.vec -o fox.html --rows 2000001
try map fox.vec -o missing/fox.html
try map fox.vec -o /dev/full --format svg
echo kept >kept.html
try map fox.vec -o kept.html
cat kept.html
try map fox.vec -o kept.html --force -q
head -n 1 kept.html
ln -s kept.html link.html
try map fox.vec -o link.html
ln fox.vec same.svg
try map fox.vec -o same.svg --force
make_model big.safetensors a.weight:F32:300001x1
try map big.safetensors -o big.html
try map big.safetensors -o big.html --rows 2 -q
make_model none.safetensors a.weight:F32:4x4x4
try map none.safetensors -o none.html
# dear neighbours are left out, and it is said how to have them
make_model wide.safetensors a.weight:F32:60000x600
embla map wide.safetensors -o wide.html 2>&1 | tail -n 4
grep -c 'embla map --neighbours 8' wide.html
ls
