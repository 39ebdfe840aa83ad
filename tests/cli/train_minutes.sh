# SPDX-License-Identifier: Apache-2.0
# --minutes ends a training that --resume continues; --sample-every prints texts; best/ is the model
# with the lowest validation loss; Ctrl-C leaves the watched rows on the screen.
for ((i = 0; i < 200; i++)); do echo "the cat sat on the mat and the dog ran $((i % 7))"; done >text
small="--layers 1 --heads 1 --dim 8 --length 16 --batch 2 --threads 1"
embla train text $small --steps 100000000 --minutes 0.01 -o timed --json | tail -n 1 |
    grep -o '"event":"out of time"'
embla train --resume timed --minutes 0.005 --json | tail -n 1 | grep -o '"event":"out of time"'
embla train text $small --steps 10 --minutes 0 -o whole --json | tail -n 1 | grep -o '"event":"done"'
embla train text $small --minutes -1 -o no || echo "exit $?"
embla train text $small --minutes soon -o no || echo "exit $?"

# samples: at the steps asked for, the same for any number of threads
embla train text $small --steps 40 --sample-every 20 -o one >one.txt
embla train text $small --steps 40 --sample-every 20 --threads 2 -o two >two.txt
grep 'sample after' one.txt
cmp <(sed -n '/sample after/,/^$/p' one.txt) <(sed -n '/sample after/,/^$/p' two.txt) && echo "the same texts"
embla train text $small --steps 40 --sample-every 20 -o three --json | grep '"event":"sample"' |
    grep -o '"step":[0-9]*,"text":"..'| cut -c 1-19

# best/: the model of the best step opens, and its validation is what the log says
embla train text $small --steps 60 --validate-every 10 --rate 0.1 -o best >best.txt
ls best/best | tr '\n' ' '
echo
embla info best/best | grep -o 'architecture.*'
least=$(cut -d, -f 3 best/loss.csv | grep '^[0-9]' | sort -g | head -n 1)
[[ -n $least ]] && echo "validation measured"
# the same files after an interruption
embla train text $small --steps 30 --validate-every 10 --rate 0.1 -o again -q >/dev/null
[[ -s again/best/model.safetensors ]] && echo "best of a shorter training"

# a terminal, and Ctrl-C
command -v script >/dev/null || exit 0
script -qec "stty cols 80 rows 24; timeout --foreground -s INT 3 embla train text $small --steps 100000000 --watch t,h -o watched" \
    /dev/null </dev/null >screen 2>&1
# after the last drawing nothing erases it: the name of a row follows the last erasing
sed 's/.*\x1b\[J//' screen | tr -d '\r' | grep -c 'interrupted after step'
grep -c 'nearest' screen | sed 's/^[1-9][0-9]*$/rows drawn/'
