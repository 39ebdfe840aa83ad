# SPDX-License-Identifier: Apache-2.0
# Rows of zeros, copies, rows without numbers, words that would move the cursor; exit 3 only for
# what is no number, with --strict also for zeros and copies.
. "$SOURCE/tests/cli/models.sh"
cat >zeros.vec <<'END'
6 4
a 0 0 0 0
b 0 0 0 -0
c 1 2 3 4
d 1 2 3 4
e 2 4 6 8
f 1 -1 1 -1
END
try health zeros.vec --top 2
try health zeros.vec --strict --json
printf '3 2\n\e[31mx 1 2\nb nan 1\nc 3 inf\n' >nan.vec
embla health nan.vec --lenient --top 1
echo "exit $?"
try health nan.vec --lenient --json --quiet
