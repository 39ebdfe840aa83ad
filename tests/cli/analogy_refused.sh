# SPDX-License-Identifier: Apache-2.0
# A question that is none.
. "$SOURCE/tests/cli/models.sh"
fox
try analogy
try analogy fox.vec
try analogy fox.vec -
try analogy fox.vec quick slow
try analogy fox.vec quick -
try analogy fox.vec quick - + slow
try analogy fox.vec - - slow
try analogy fox.vec 'quick - slow' -k 1
try analogy fox.vec quick -slow
try analogy fox.vec quick - slwo + Lazy
try analogy fox.vec quick - slwo
try analogy fox.vec quick - '#12'
try analogy fox.vec quick - slow -k 0
try analogy fox.vec quick - slow --rows 0
try analogy fox.vec quick - slow --format json
try analogy missing.vec quick - slow
try analogy fox.vec $(for i in {1..16}; do echo a +; done) a
try analogy fox.vec a $(for i in {1..15}; do echo + a; done) -k 1
printf '4 2\na 1 0\nb nan 1\nc 0 0\ne 1 1\n' >nan.vec
try analogy nan.vec a - b
try analogy nan.vec a + c --format table
try analogy nan.vec a + c
printf '2 2\na 1 0\nb 0 0\n' >zero.vec
try analogy zero.vec a - a
try analogy zero.vec a - a + a --keep-words
try analogy zero.vec b
