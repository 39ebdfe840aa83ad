# SPDX-License-Identifier: Apache-2.0
# The facts of small tables, in text and as JSON.
. "$SOURCE/tests/cli/models.sh"
fox
try health fox.vec --top 3
try health fox.vec --top 2 --json
try health fox.vec --top 0
