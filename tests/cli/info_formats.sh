# SPDX-License-Identifier: Apache-2.0
# What one format alone knows: fastText's n-grams, llm.c's padding, two-byte numbers of npy;
# words where the rows of a chosen tensor are too few for them; files named by mistake.
. "$SOURCE/tests/cli/models.sh"
cp "$SOURCE/fuzz/corpus/fasttext/ok_skipgram" fast.bin
try info fast.bin
try lookup fast.bin the --plain
try lookup fast.bin the --plain --quiet
cp "$SOURCE/fuzz/corpus/llmc/ok_f32" gpt2.bin
try info gpt2.bin
embla info gpt2.bin --json | grep -o '"vocab":null.*"tokens_without_row":[^,]*'
header="{'descr': '|V2', 'fortran_order': False, 'shape': (2, 2), }"
printf '\x93NUMPY\x01\x00\x76\x00%-117s\n\x80\x3f\0\x40\x40\x40\x80\x40' "$header" >two.npy
try lookup two.npy '#1' --plain
try lookup two.npy '#1' --plain --as bf16
# words only where there are rows enough for them
folder m '{"model_type":"gpt2","tie_word_embeddings":true}'
make_model m/model.safetensors wte.weight:F32:5x4 h.0.ln.weight:F32:4x4 h.0.c.weight:F32:9x4
words 5 >m/vocab.txt
try info m::h.0.ln.weight
try doctor m::h.0.ln.weight
try lookup m::h.0.ln.weight '#3' --plain
try lookup m::h.0.ln.weight w3 --plain
try lookup m::h.0.c.weight w3 --plain
# files that are often named by mistake
echo '{"a": 1}' >tokenizer.json
try info tokenizer.json
gzip -k tokenizer.json
try info tokenizer.json.gz
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 12\n' >model.safetensors
try doctor model.safetensors
# on a terminal lines are as long as it is wide, from 40 to 100 columns; in a pipe 80
command -v script >/dev/null || { echo "skipped: there is no script"; exit 77; }
for width in 20 60 200; do
    script -qec "stty cols $width; embla doctor m" /dev/null </dev/null | tr -d '\r'
done
