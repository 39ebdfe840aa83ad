# SPDX-License-Identifier: Apache-2.0
# The answers that are known, where the vectors are.
[[ -d ${EMBLA_DATA-} ]] || { echo "skipped: EMBLA_DATA names no folder"; exit 77; }
xz -dc "$EMBLA_DATA/glove-50k/glove.6B.100d.50k.txt.xz" >glove.txt || { echo "skipped: no glove-50k"; exit 77; }
short() { awk -F '\t' '{ printf "%s %s %.3f\n", $1, $2, $4 }'; }
embla analogy glove.txt king - man + woman -k 3 | short
embla analogy glove.txt paris - france + germany -k 1 | short
embla analogy glove.txt king - man + woman -k 1 --multiply | cut -f 1,2
embla analogy glove.txt king - man + woman -k 2 --keep-words | cut -f 1,2
try analogy glove.txt king - man + womna
