# SPDX-License-Identifier: Apache-2.0
# The codes at the end of messages.
try help C15
try help '(w5)'
try help p
try help C15 --json
try help C99
try help m9
try help QQ7
try help V2
for code in $(sed -n 's/^| \([A-Z][A-Z]*[0-9]*\) |.*/\1/p' "$SOURCE/docs/formats.md" | sort -u); do
    embla help "$code" >/dev/null || echo "$code is not explained"
done
