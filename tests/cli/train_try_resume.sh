# SPDX-License-Identifier: Apache-2.0
# --try continues: what is trained is read, what is missing is trained, what was stopped goes on.
mask() { sed -E -e "s|$PWD/||g" -e 's/^(time +).*/\1T/' -e 's/ +[0-9]+[.][0-9]+$/  S/'; }
seq 300 | tr 0-9 a-j >names.txt
experiment=(train names.txt --preset microgpt --try dim=8,16 --seeds 2)
embla "${experiment[@]}" --steps 20 -o runs -q | mask >first
cat first
touch -d 2001-01-01 before
find runs -exec touch -d 2001-01-01 {} +
rm -r runs/dim=16,seed=1
embla "${experiment[@]}" --steps 20 --resume runs | mask | tee out
grep -A 2 ^dim out | cmp - first && echo "the same table"
find runs -name model.safetensors -newer before | LC_ALL=C sort
echo "-- the same without work"
embla "${experiment[@]}" --steps 20 --resume runs -q | mask | cmp - first && echo "the same table"
echo "-- another training in the folder"
embla "${experiment[@]}" --steps 30 --resume runs -q 2>&1 | mask
echo "exit ${PIPESTATUS[0]}"
try "${experiment[@]}" --steps 20 -o runs | mask
try "${experiment[@]}" --steps 20 --resume nowhere
echo "-- Ctrl-C: the table of what is trained"
for output in "" "-o kept"; do
    rm -f out # of the round before
    set -m # so that the child does not ignore INT
    embla train names.txt --preset microgpt --try steps=5,1000000000 $output >out 2>err &
    set +m
    while kill -0 $! 2>/dev/null && ! grep -qs '^5  ' out; do sleep 0.01; done
    kill -INT $!
    wait $!
    echo "exit $?"
    mask <out
    cat err
done
ls kept/steps=1000000000,seed=1
echo "-- a run that was stopped goes on, with the bits of one that was not"
embla train names.txt --preset microgpt --dim 8 --steps 20 --validation 0.1 --save-every 5 -o stopped -q >/dev/null
rm stopped/checkpoints/*20.safetensors
mkdir again && mv stopped again/dim=8,seed=1
embla train names.txt --preset microgpt --try dim=8 --steps 20 --resume again | mask | grep -e ^runs -e ^8
cmp again/dim=8,seed=1/model.safetensors runs/dim=8,seed=1/model.safetensors && echo "the same weights"
