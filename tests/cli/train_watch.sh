# SPDX-License-Identifier: Apache-2.0
# On a terminal --watch draws the rows of the last step, also if all steps take a moment only.
command -v script >/dev/null || { echo "skipped: script is not here"; exit 77; }
cp "$SOURCE/demo/names.txt" .
script -qec "stty cols 80 rows 24; embla train names.txt --preset microgpt -o n --watch e,m" /dev/null </dev/null |
    tr -d '\r' | sed 's/\x1b\[[0-9;?]*[A-Za-z]//g' >screen
embla train names.txt --preset microgpt -o m --watch e,m >pipe
for token in e m; do # distance from the initial row, and the nearest row
    for file in screen pipe; do grep "^$token " $file | tail -1 | awk '{ print $1, $2, $4, $5 }'; done >rows
    [[ $(wc -l <rows) -eq 2 && $(uniq rows | wc -l) -eq 1 ]] && echo "$token: the same rows" || cat rows
done
grep -c 'step 1,000 of 1,000' screen
