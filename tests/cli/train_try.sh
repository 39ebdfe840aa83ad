# SPDX-License-Identifier: Apache-2.0
# --try: a table of all combinations. The losses are those of the same trainings done one by one,
# and do not depend on the CPU: so small a model never calls an engine.
mask() { sed -E -e "s|$PWD/||g" -e 's/^(time +).*/\1T/' -e 's/ +[0-9]+[.][0-9]+$/  S/'; }
seq 300 | tr 0-9 a-j >names.txt
small=(names.txt --preset microgpt --steps 20)
embla train "${small[@]}" --try dim=8,16 --try tied=yes,no --seeds 2 | mask
ls
echo "-- without seeds, quiet, and --validation"
embla train "${small[@]}" -q --validation 0.2 --try positions=learned,sinusoidal,rotary,none | mask
echo "-- a shape that is not possible, and a rate that diverges"
embla train "${small[@]}" --try heads=2,3 | mask
embla train "${small[@]}" --try rate=0.01,1e20 --seeds 2 | mask
try train "${small[@]}" -q --try heads=3,5
echo "-- a stream; without learning all sizes of a batch have the same loss on the same text"
embla train names.txt --preset gpt2-mini --layers 1 --heads 2 --dim 8 --length 8 --steps 4 \
    --try batch=1,2,4 --try rate=0 -o stream | mask
wc -l stream/*/loss.csv
embla train "${small[@]}" --try batch=1,2,4 --try rate=0 -q | mask
echo "-- kept: the files of an ordinary training"
embla train "${small[@]}" --try dim=8 --try tied=yes -o runs | mask
embla train "${small[@]}" --dim 8 --tied --validation 0.1 -o one | grep ^validation
ls runs runs/dim=8,tied=yes,seed=1
cmp one/model.safetensors runs/dim=8,tied=yes,seed=1/model.safetensors && echo "the same weights"
embla generate runs/dim=8,tied=yes,seed=1 --tokens 3 >text && wc -l <text
echo "-- the order of the text has the seed of --seed, the weights have their own"
embla train "${small[@]}" --try dim=8 --seeds 2 --seed 5 -o seeds -q | mask
for run in seeds/*; do head -c 4000 $run/checkpoints/*20.safetensors | grep -ao '"[a-z.]*seed":"[0-9]*"'; done
echo "-- spread of the token rows"
embla train "${small[@]}" --steps 0 --try token-spread=0.08,0.8 -o spread | mask | tail -n 2
for run in spread/*; do embla health $run --json | grep -o '"mean":[0-9.e-]*' | head -n 1; done
