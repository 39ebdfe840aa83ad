# SPDX-License-Identifier: Apache-2.0
# A checkpoint of one's own: its tensors added up, several beside presets, changed by options.
. "$SOURCE/tests/cli/models.sh"
cp -r "$SOURCE/demo/names" "$SOURCE/demo/village" "$SOURCE/demo/five.vec" .
embla cost names
echo
embla cost village --quiet
echo
embla cost five.vec
echo
embla cost microgpt names five.vec
echo
embla cost names --tied --dtype bf16
for model in names five.vec microgpt; do
    embla cost "$model" --json | sed -E 's/"notes".*//' | tr -d '\n' | sed -E 's/.*("rows".*"tied":[a-z]*).*"total":(\{[^}]*\}).*/\1 \2\n/'
done
echo "-- GGUF: the trunk in another dtype, constants that do not count"
make_model t.gguf text:general.architecture=llama tokens:a,b,c,d token_embd.weight:Q8_0:4x32 output.weight:F16:4x32 \
    rope_freqs.weight:F32:16 blk.0.attn_q.weight:F16:32x32 output_norm.weight:F32:32
embla cost t.gguf
echo "-- a file with the name of a preset, a tensor, a compressed file, standard input"
mkdir gpt2
cp names/model.safetensors gpt2/
embla cost gpt2 2>&1 | head -n 2
embla cost names::lm_head | head -n 1
gzip -k five.vec
embla cost five.vec.gz -q | tail -n 1
embla cost - <five.vec | head -n 1
echo "-- neither"
try cost nothing.gguf
try cost ./nothing
try cost gpt
printf 'a,b\n' >text.csv
try cost text.csv
