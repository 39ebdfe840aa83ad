# SPDX-License-Identifier: Apache-2.0
# A training that was interrupted ends with the same numbers as one that was not.
seq 300 >numbers.txt
line=(numbers.txt --preset microgpt --steps 6000 --save-every 1000 --validation 0.1 --threads 1)
embla train "${line[@]}" -o whole --plot cut.svg >/dev/null
( # with jobs of its own, so that Ctrl-C reaches what runs in the background
    set -m
    embla train "${line[@]}" -o cut >out 2>err &
    while kill -0 $! && [[ ! -e cut/checkpoints/step-0000001000.safetensors ]]; do sleep 0.01; done
    kill -INT $!
    wait $!
    echo "exit $?"
) 2>/dev/null
sed -E 's/step [0-9,]+ of/step N of/' err
grep -c '^next' out
# in its folder nothing else may be begun
try train numbers.txt -o cut
# lines behind the checkpoint are cut off, one that is torn too
echo "99999,1,,1,1,1,1" >>cut/loss.csv
printf '100000,1,,1' >>cut/loss.csv
embla train --resume cut --threads 2 --plot cut.svg | grep -E '^(resumed|loss|validation|next)' |
    sed -E 's/step [0-9,]+, from .*/step N, from .../'
cmp whole/model.safetensors cut/model.safetensors && echo "the same model"
cmp whole/checkpoints/step-0000006000.safetensors cut/checkpoints/step-0000006000.safetensors &&
    echo "the same checkpoint"
cmp <(cut -d, -f1-6 whole/loss.csv) <(cut -d, -f1-6 cut/loss.csv) && echo "the same losses"
ls cut cut/checkpoints
# it is complete, and says so; more steps go on at the last rate
embla train --resume cut | sed -nE 's/^(steps .*)/\1/p'
embla train --resume cut --steps 6010 --keep 1 | grep -c '^steps  *10 steps'
tail -n 1 cut/loss.csv | cut -d, -f1,4
ls cut/checkpoints
# a checkpoint that is damaged is passed over
embla train numbers.txt --preset microgpt -o torn --steps 30 --save-every 10 -q >/dev/null
truncate -s 1000 torn/checkpoints/step-0000000030.safetensors
embla train --resume torn | grep -E '^(resumed|note)'
# the text must be the one it was
seq 301 >numbers.txt
try train --resume torn --steps 40 | sed "s|$PWD/||"
# refused: what would change the numbers
try train --resume torn --rate 1
try train --resume torn --preset gpt2
try train numbers.txt --resume torn
try train --resume torn --steps 5
try train --resume nowhere
mkdir -p empty/checkpoints
try train --resume empty
