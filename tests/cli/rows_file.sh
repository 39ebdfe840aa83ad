# SPDX-License-Identifier: Apache-2.0
# Row numbers of a checkpoint that says how its rows are named, and the rows themselves.
. "$SOURCE/tests/cli/models.sh"
make_model giant g
try info g
try rows g 1 2 3
try rows g --history 1,7 5 --values 3
try rows g 1 --values 2 --json
try rows g 1000
try rows g --layer 7 1
try info g --json
