# SPDX-License-Identifier: Apache-2.0
# Words that people bring along from other tools: each works, or the message names ours.
. "$SOURCE/tests/cli/models.sh"
fox
for word in nearest neighbours neighbors similar similarity nn encode quantize plot man \
    tokenize serve; do
    try "$word" fox.vec
    try help "$word"
done
embla version | head -n 1 | cut -d ' ' -f 1
embla version --json | cut -c 1-11
# a mistyped option before the verb is what is wrong, not the file after it
try --versoin fox.vec
try --jsno info fox.vec
try info fox.vec --jsno
# a number may follow its letter
try near fox.vec fox -k2
try near fox.vec fox -k2x
