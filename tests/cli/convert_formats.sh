# SPDX-License-Identifier: Apache-2.0
# To every format and back: the same rows.
. "$SOURCE/tests/cli/models.sh"
fox
embla lookup fox.vec --ids 0,1,2,3,4,5,6,7,8,9,10,11 --plain >rows
for name in a.safetensors b.npy c.gguf d.w2v e.vec f.txt; do
    embla convert fox.vec "$name" --quiet >/dev/null || echo "$name: exit $?"
    embla lookup "$name" --ids 0,1,2,3,4,5,6,7,8,9,10,11 --plain | cmp - rows && echo "$name: the same"
done
ls
try convert fox.vec named --to npy
try info named
# the same words are there: nobody need be asked
try convert fox.vec b.safetensors
printf '#embla-vocab 1\nold\n' >c.vocab.txt
try convert fox.vec c.npy
try convert fox.vec c.npy --force
head -3 c.vocab.txt
try convert fox.vec g.npy --to nothing
