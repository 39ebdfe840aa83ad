# SPDX-License-Identifier: Apache-2.0
# Rows that move, in a pipe; the loss as a chart; the line that a terminal shows.
seq 300 >numbers.txt
embla train numbers.txt --preset microgpt -o a --steps 40 --every 20 --watch '1,#10' --threads 1 \
    --plot loss.svg |
    grep -cE '^(1|<bos>) +[0-9]+\.[0-9]{4} +[0-9]+\.[0-9]{4}( +[^ ]+ +-?[0-9]\.[0-9]{2}){5}$'
head -c 4 loss.svg
echo
grep -c '<path class="line a' loss.svg
grep -o '<title>[^<]*' loss.svg
tail -n 1 loss.svg
# it is drawn anew; with validation there are points
embla train numbers.txt --preset microgpt -o b --steps 40 --validation 0.2 --plot loss.svg -q >/dev/null
grep -A100 'class="point b"' loss.svg | grep -c '<circle cx'
ls
# as if the rows had never been away: how far they moved counts from the first step
embla train --resume a --steps 41 --watch 1 --threads 1 | grep '^1 ' | awk '{print ($2 > $3)}'
command -v script >/dev/null || { echo "skipped: there is no script"; exit 77; }
on_terminal() { script -qec "stty cols 80 rows 30; $*" /dev/null </dev/null; }
on_terminal embla train numbers.txt --preset microgpt -o c --steps 8000 --watch 1 --threads 1 >drawn
grep -aqE 'step [0-9,]+ of 8,000  loss [0-9.]+  [0-9,]+ tokens/s  [0-9]+:[0-9]{2} left' drawn &&
    echo drawn
grep -acE '^ +[0-9,]+ +[0-9.]+ +[0-9,]+ ' drawn
tail -n 4 drawn | tr -d '\r' | sed -e 's/.*\x1b\[J//' -e 's/ in [0-9.]* s: .*/ in TIME/'
