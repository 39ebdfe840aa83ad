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
