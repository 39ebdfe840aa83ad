# SPDX-License-Identifier: Apache-2.0
# Batches cut into micro-batches: the result depends on their number, and a checkpoint keeps it.
unset OMPI_COMM_WORLD_SIZE PMIX_RANK PMI_RANK PMI_SIZE
seq 300 >numbers.txt
line=(numbers.txt --preset microgpt --batch 6 --steps 40 --save-every 20 --threads 1)
embla train "${line[@]}" -o plain | grep -c '^ranks'
embla train "${line[@]}" -o one --micro-batches 1 | grep -c '^ranks'
cmp plain/model.safetensors one/model.safetensors && echo "one micro-batch: the same model"
embla train "${line[@]}" -o three --micro-batches 3 | grep -A1 '^ranks'
cmp -s plain/model.safetensors three/model.safetensors || echo "three micro-batches: another model"
embla train "${line[@]}" -o fast --micro-batches 3 --fast --json >fast.json
grep -o '"ranks.*}' fast.json
# resumed: the same micro-batches
cp -r three again
rm again/checkpoints/step-0000000040.safetensors
embla train --resume again --threads 2 | grep -E '^(resumed|ranks)' | sed 's/, from .*//'
cmp three/checkpoints/step-0000000040.safetensors again/checkpoints/step-0000000040.safetensors &&
    echo "the same checkpoint"
# token rows divided: the same model with another number of threads, and resumed
embla train "${line[@]}" -o rows --shard-tokens --micro-batches 3 | grep -A1 '^ranks'
ls rows/checkpoints
embla train "${line[@]}" -o rows2 --shard-tokens --micro-batches 3 --threads 2 --json | grep -o '"ranks.*}'
cmp rows/model.safetensors rows2/model.safetensors && echo "two threads: the same model"
rm -r rows2/checkpoints/step-0000000040.safetensors*
embla train --resume rows2 | grep -A1 '^ranks'
cmp rows/model.safetensors rows2/model.safetensors && echo "resumed: the same model"
# refused
try train "${line[@]}" -o none --shard-tokens --sample-every 5
try train "${line[@]}" -o none --shard-tokens --watch '#1'
try train "${line[@]}" -o none --shard-tokens --loss sampled --negatives 3
try train "${line[@]}" -o none --micro-batches 7
try train "${line[@]}" -o none --micro-batches 0
try train --resume again --micro-batches 2
try train "${line[@]}" -o none --patience 99999999999
[[ -e none ]] || echo "nothing was written"
