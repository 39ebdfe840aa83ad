# SPDX-License-Identifier: Apache-2.0
# One question in three forms.
. "$SOURCE/tests/cli/models.sh"
fox
try analogy fox.vec quick - slow + lazy -k 2
try analogy fox.vec 'quick - slow + lazy' -k 2
try analogy fox.vec slow quick lazy -k 2
try analogy fox.vec slow quick lazy -k 2 --quiet
try analogy fox.vec 'quick - slow + ' -k 2
try analogy fox.vec slow quick -k 2
# the control: the cosine of the answer with the first word alone, and the nearest row of that word
try analogy fox.vec quick - slow + lazy -k 2 --format table
try analogy fox.vec quick - slow + lazy -k 1 --format table --keep-words
try analogy fox.vec quick - slow + lazy -k 1 --json
try analogy fox.vec quick -k 1 --format table
try analogy fox.vec quick -k 1 --json
