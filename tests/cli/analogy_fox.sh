# SPDX-License-Identifier: Apache-2.0
# king - man + woman, with the words of the small table.
. "$SOURCE/tests/cli/models.sh"
fox
try analogy fox.vec quick - slow + lazy -k 3
try analogy fox.vec quick - slow + lazy -k 3 --format table
LC_ALL=C.UTF-8 try analogy fox.vec quick - slow + lazy -k 3 --multiply --format table
try analogy fox.vec quick - slow + lazy -k 3 --keep-words
try analogy fox.vec quick - slow + lazy -k 2 --json
try analogy fox.vec quick - slow + lazy -k 2 --json --multiply
try analogy fox.vec quick - slow + lazy --rows 6
try analogy fox.vec - slow + quick '+' '#4' -k 1 --format table
try analogy fox.vec + quick -k 1 --format table
try analogy fox.vec - quick -k 1 --format table
# a single word is the same question as near's
cmp <(embla analogy fox.vec quick | cut -f 1-3) <(embla near fox.vec quick | cut -f 1-3) && echo "near and analogy agree"
printf '5 2\n- 1 0\n+ 0 1\n-x 1 1\n#1 1 -1\na 1 2\n' >signs.vec
try analogy signs.vec '\-' - '\+' + '\-x' --format table
try analogy signs.vec '\#1' + '#1'
mkdir m
make_model m/model.safetensors embeddings:F32:6x3 mapping:I32:10:mod=5 weights:F32:10
words 10 >m/vocab.txt
try analogy m w1 - w7 --format table
