# SPDX-License-Identifier: Apache-2.0
# Frozen parts keep their numbers, all else learns.
seq 300 >numbers.txt
shape=(--preset gpt2-mini --layers 1 --heads 2 --dim 16 --length 8 --batch 2 --threads 1)
embla train numbers.txt -o base "${shape[@]}" --steps 20 -q >/dev/null
more=(numbers.txt --from base --steps 10 --threads 1)
# the tensors that are as they were
same() {
    python3 - base/model.safetensors "$1/model.safetensors" <<'END'
import json, struct, sys
def tensors(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    head.pop("__metadata__", None)
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]
            for k, v in head.items()}
a, b = (tensors(p) for p in sys.argv[1:])
rows = 4 * 64 # the first 4 rows of 16 numbers
print("wte", a["transformer.wte.weight"] == b["transformer.wte.weight"],
      "its first rows", a["transformer.wte.weight"][:rows] == b["transformer.wte.weight"][:rows],
      "wpe", a["transformer.wpe.weight"] == b["transformer.wpe.weight"],
      "trunk", sum(a[k] == b[k] for k in a if ".wte." not in k and ".wpe." not in k),
      "of", len(a) - 2)
END
}
for list in tokens positions trunk below:4 tokens,positions trunk,positions,below:4; do
    embla train "${more[@]}" -o "$list" --freeze "$list" | grep '^frozen'
    same "$list"
done
embla train "${more[@]}" -o none -q >/dev/null
same none
# only what was added learns: an n-gram table
embla train "${more[@]}" -o grams --freeze tokens,positions,trunk --ngram-rows 100 | grep -c '^frozen'
# resumed, it is still frozen
embla train "${more[@]}" -o half --freeze trunk,below:4 --save-every 5 -q >/dev/null
rm half/checkpoints/step-0000000010.safetensors
embla train --resume half | grep '^frozen'
embla train "${more[@]}" -o whole --freeze trunk,below:4 -q >/dev/null
cmp half/model.safetensors whole/model.safetensors && echo "the same"
# what does not fit
refused() { try train "$@" -o no | sed "s|$PWD/||"; }
refused "${more[@]}" --freeze head
refused "${more[@]}" --freeze ''
refused "${more[@]}" --freeze tokens,
refused "${more[@]}" --freeze below
refused "${more[@]}" --freeze below:
refused "${more[@]}" --freeze below:0
refused "${more[@]}" --freeze below:x
refused "${more[@]}" --freeze below:12
refused "${more[@]}" --freeze tokens,below:4
refused "${more[@]}" --freeze tokens,positions,trunk
refused numbers.txt "${shape[@]}" --positions rotary --freeze positions
try train --resume half --freeze tokens
