# SPDX-License-Identifier: Apache-2.0
# The text, the model and the table of the demo can be made again, byte by byte the same: neither the
# kernel set nor the number of threads changes a training without an engine.
command -v python3 >/dev/null || {
    echo "python3 is missing"
    exit 77
}
[[ -z ${EMBLA_TEST_EMULATED-} ]] || {
    echo "skipped: an emulator takes too long for the trainings of the demo"
    exit 77
}
sh "$SOURCE/demo/make.sh" embla made story >log
for file in village.txt words.vec story/config.json story/tokenizer.json story/model.safetensors; do
    cmp "made/$file" "$SOURCE/demo/$file" && echo "$file"
done
