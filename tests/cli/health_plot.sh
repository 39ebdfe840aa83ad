# SPDX-License-Identifier: Apache-2.0
# The histogram as a file: well formed, complete, never over what is there or is read.
. "$SOURCE/tests/cli/models.sh"
fox
try health fox.vec --top 1 --plot norms.svg | sed -E 's/[0-9.]+ kB/N kB/'
grep -c '<rect class="bar"' norms.svg
tail -n 1 norms.svg
grep -o '<title>Norms[^/]*' norms.svg
grep -o 'prefers-color-scheme:dark' norms.svg
try health fox.vec --plot norms.svg
try health fox.vec --json --top 0 --plot norms.svg --force | cut -c1-60
try health fox.vec --plot fox.vec --force
try health fox.vec --plot nowhere/norms.svg
ls
