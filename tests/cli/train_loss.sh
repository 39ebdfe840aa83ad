# SPDX-License-Identifier: Apache-2.0
# A loss against drawn tokens.
seq 2000 >numbers.txt
line=(numbers.txt --words 500 --preset gpt2-mini --layers 1 --heads 2 --dim 16 --length 16 --batch 4
    --steps 20 --threads 1)
embla train "${line[@]}" -o full --loss full | grep -cE '^loss  .*drawn'
embla train "${line[@]}" -o sampled --loss sampled --negatives 100 | grep -E '^loss .*drawn'
cmp -s full/model.safetensors sampled/model.safetensors || echo "others"
embla train "${line[@]}" -o half --loss sampled --negatives 100 --save-every 10 -q >/dev/null
rm half/checkpoints/step-0000000020.safetensors
embla train --resume half --threads 2 | grep -cE '^loss .*drawn'
cmp half/model.safetensors sampled/model.safetensors && echo "the same"
try train "${line[@]}" -o no --loss adaptive
try train "${line[@]}" -o no --loss sampled
try train "${line[@]}" -o no --negatives 5
try train "${line[@]}" -o no --loss sampled --negatives 0
try train --resume half --loss full
