# SPDX-License-Identifier: Apache-2.0
# --try on a terminal: each run says how long all of them will still take.
command -v script >/dev/null || { echo "skipped: there is no script"; exit 77; }
seq 300 | tr 0-9 a-j >names.txt
script -qec "stty cols 80; embla train names.txt --preset microgpt --try dim=4,8 --seeds 2 --steps 400" /dev/null </dev/null >drawn
tr '\r' '\n' <drawn | grep -ao 'run [0-9]* of [0-9]*, .* to go: dim=[48], seed [12]' | sed -E 's/, .* to go/, .. to go/' | sort -u
