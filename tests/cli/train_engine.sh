# SPDX-License-Identifier: Apache-2.0
# Without an engine a training has the same bits on every kernel set and for any number of threads,
# also one whose products are large and whose attention has tiles. An engine would follow the limits
# that are set here for it, and give other bits.
seq 400 >numbers.txt
large=(--layers 1 --heads 2 --dim 64 --length 80 --batch 3 --steps 4 --validation 0)
declare -A limits=([scalar]=SSE41 [avx2]=AVX2 [avx512]=ALL) cores=([scalar]=Nehalem [avx2]=Haswell [avx512]=SkylakeX)
for isa in scalar avx2 avx512; do
    export ONEDNN_MAX_CPU_ISA=${limits[$isa]} DNNL_MAX_CPU_ISA=${limits[$isa]} OPENBLAS_CORETYPE=${cores[$isa]}
    for threads in 1 2 3; do
        EMBLA_ISA=$isa embla train numbers.txt "${large[@]}" --engine none --threads $threads \
            -o $isa-$threads --json >out
        cmp scalar-1/model.safetensors $isa-$threads/model.safetensors && echo "$isa $threads: same"
    done
done
unset ONEDNN_MAX_CPU_ISA DNNL_MAX_CPU_ISA OPENBLAS_CORETYPE
grep -o '"engine":[^,]*,"threads":3' out
# a resumed training keeps it
embla train numbers.txt "${large[@]}" --engine none --save-every 2 -o half -q >out
rm half/checkpoints/step-0000000004.safetensors
embla train --resume half -q >out
cmp scalar-1/model.safetensors half/model.safetensors && echo "resumed: same"
# auto means none for a small model
embla train numbers.txt --preset microgpt --dim 32 --batch 4 --steps 30 -o auto --json >out
grep -o '"engine":[^,]*' out
embla train numbers.txt --preset microgpt --dim 32 --batch 4 --steps 30 --engine none -o none -q >out
cmp auto/model.safetensors none/model.safetensors && echo "auto: same"
try train numbers.txt -o x --engine mkl
try train numbers.txt -o x --engine none --loss sampled --negatives 5
try train numbers.txt -o x --engine none --shard-tokens
ls
