# SPDX-License-Identifier: Apache-2.0
# tokens --compile: a file that is a tokenizer itself, and what is refused.
. "$SOURCE/tests/cli/tokenizers.sh"
bert
bytes
try tokens bert.json --compile bert.tok
try tokens bert.tok 'Unaffable CAFE!' --special --offsets
try tokens bert.tok --decode 3 4 5 8
try tokens bytes.json --compile bytes.tok
try tokens bert.tok 'unaffable abc' --compare bytes.tok
echo "-- refused"
try tokens bert.json --compile bert.tok
try tokens bert.json --compile bert.tok --force
try tokens bert.json --compile bert.json --force
try tokens bert.json a --compile other.tok
try tokens bert.tok --compile other.tok
try tokens missing.json --compile other.tok
try tokens bert.json --compile missing/other.tok
head -c 300 bert.tok >short.tok
try tokens short.tok a
printf 'X' | dd of=bert.tok bs=1 seek=2000 conv=notrunc status=none
try tokens bert.tok a 2>&1 | sed 's/[0-9a-f]\{16\}/CHECKSUM/g'
