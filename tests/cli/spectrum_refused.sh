# SPDX-License-Identifier: Apache-2.0
# What is no table, and lines that are wrong.
. "$SOURCE/tests/cli/models.sh"
fox
try spectrum
try spectrum fox.vec fox.vec
try spectrum missing.vec
try spectrum fox.vec --top x
try spectrum fox.vec --force
try spectrum fox.vec::none
try spectrum fox.vec --plot fox.vec --force
try spectrum fox.vec --plot missing/s.svg
ls
