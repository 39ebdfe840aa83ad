# SPDX-License-Identifier: Apache-2.0
# What cannot be compared, and options that make no sense.
. "$SOURCE/tests/cli/models.sh"
fox
printf '1 2\na 1 2\n' >a.vec
try diff fox.vec a.vec
try diff fox.vec
try diff fox.vec missing.vec
try diff fox.vec fox.vec --tolerance x
try diff fox.vec fox.vec --tolerance -1
try diff fox.vec fox.vec --tolerance nan
try diff fox.vec fox.vec --by-word --by-row
try diff fox.vec fox.vec --top x
