# SPDX-License-Identifier: Apache-2.0
# The same text from help, --help and -h: one screen of 80 x 24 that has each verb once.
embla help | sed '1s/ [0-9.]* / VERSION /'
embla help >one && embla --help >two && embla -h >three && cmp one two && cmp one three
embla help --all >all
awk 'length > 80' one all
echo "$(wc -l <one) lines"
embla help --json | tr '{' '\n' | sed -n 's/^"name":"\([^"]*\)","operands".*/\1/p' | sort >verbs
sed -n 's/^  \([a-z]\)/\1/p' one | tr ' ' '\n' | sort | diff verbs - && echo "each verb is in a group"
embla help --json | grep -c '"group":null'
echo
sed '1s/ [0-9.]* / VERSION /' all
try help --all cost
try help --all --json
