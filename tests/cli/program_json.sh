# SPDX-License-Identifier: Apache-2.0
# Every object parses.
if command -v python3 >/dev/null; then
    check() { python3 -m json.tool >/dev/null; }
elif command -v jq >/dev/null; then
    check() { jq . >/dev/null; }
else
    echo "skipped: neither python3 nor jq is here"
    exit 77
fi
for line in "cost gpt2" "cost gpt2 microgpt" "cost --list" "cost --rows 5 --dim 5" "--version" \
    "help" "help cost" "bench --list" "cost --help" \
    "compare $SOURCE/demo/words.vec cat dog tuesday" "embed $SOURCE/demo/names e m" \
    "demo -o demo" "tokens demo/names emma --compare demo/village" "tokens demo/names --compile F" \
    "new -o t.npy --rows 3 --dim 2 --dry-run"; do
    embla $line --json | check && echo "${line//$SOURCE\/}"
done
