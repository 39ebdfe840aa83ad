# SPDX-License-Identifier: Apache-2.0
# Output that did not arrive is a failure, with a sentence.
[[ -w /dev/full ]] || { echo "skipped: there is no /dev/full"; exit 77; }
for line in "cost gpt2" "cost gpt2 --json" "help" "help --man" "completion bash" "--version"; do
    embla $line >/dev/full
    echo "$line: exit $?"
done
cp "$SOURCE/demo/names.txt" .
embla train names.txt --preset microgpt --steps 20 -o n >/dev/full
echo "train: exit $?"
