# SPDX-License-Identifier: Apache-2.0
# What is wrong is said.
. "$SOURCE/tests/cli/tokenizers.sh"
bert
try tokens
try tokens missing.json a
try tokens bert.json --decode x
try tokens bert.json --decode 99999999999
try tokens bert.json --decode 1 --count
try tokens bert.json a --format nope
try tokens bert.json a --format ids --offsets
try tokens bert.json --file missing.txt
try tokens bert.json a --compare missing.json
try tokens bert.json a --special --max-tokens 1
echo '{}' >empty.json
try tokens empty.json a
echo '{"model": {"type": "Other", "vocab": {}}}' >other.json
try tokens other.json a
echo '{"model": {"vocab": {"a": 0}}}' >none.json
try tokens none.json b
cp "$SOURCE/demo/names/tokenizer.json" names.json
try tokens names.json --decode 4 99 12
