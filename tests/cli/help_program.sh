# SPDX-License-Identifier: Apache-2.0
# The same text from help, --help and -h, within 80 columns.
embla help | sed '1s/ [0-9.]* / VERSION /'
embla help >one && embla --help >two && embla -h >three && cmp one two && cmp one three
awk 'length > 80' one
