# SPDX-License-Identifier: Apache-2.0
# A disk that is full in the midst of a training: said, and the checkpoint before it is kept. A
# limit on the size of files stands in for it; the thread sanitizer cannot do with one.
seq 301 >numbers.txt
(
    ulimit -f 64
    embla train numbers.txt --preset microgpt -o one --steps 1
) >/dev/null 2>&1 || { echo "skipped: this build cannot do with a limit on files"; exit 77; }
(
    trap '' XFSZ
    ulimit -f 64
    embla train numbers.txt --preset microgpt -o full --steps 2000 --save-every 400 --threads 1
) 2>&1 >/dev/null | sed -E 's|embla: full/loss.csv: .*|embla: full/loss.csv: (what the system says)|'
ls full/checkpoints
embla train --resume full --threads 1 >/dev/null
embla train numbers.txt --preset microgpt -o free --steps 2000 --threads 1 >/dev/null
cmp full/model.safetensors free/model.safetensors && echo "the same model"
cmp <(cut -d, -f1-6 full/loss.csv) <(cut -d, -f1-6 free/loss.csv) && echo "the same losses"
