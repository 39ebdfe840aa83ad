#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ranks of one job that run different verbs: each is refused with a sentence of ours that names both
# verbs, soon, and MPI does not end the job. A rank whose verb does without MPI does not leave the
# others waiting for ever.
#   usage: verbs.sh openmpi|mpich EMBLA
set -euo pipefail
. "$(dirname "$0")/common.sh"
embla=$2
cd "$folder"
seq 1 2000 | awk '{ printf "w%d%s", $1 % 40, $1 % 7 ? " " : "\n" }' >text

fail() {
    echo "$*"
    exit 1
}

train=("$embla" train text --preset microgpt --steps 3 --batch 2 --patience 5 -q -o model)
words=("$embla" words text --epochs 1 -q -o words.safetensors)
plan=("$embla" plan --rows 1e6 --dim 8 --measure)

differ() { # FIRST SECOND: the names of two commands above
    local -n one=$1 two=$2
    ranks 1 "${one[@]}" : -n 1 "${two[@]}" >log 2>&1 </dev/null && fail "$1 beside $2: not refused"
    grep -Eq "embla: rank [01] of 2 runs 'embla ($1|$2)', but rank [01] runs 'embla ($1|$2)'" log ||
        fail "$1 beside $2: $(cat log)"
    grep -Eqi 'abort|MPI_ERR|NBC' <(grep -vi 'Per user-direction, the job has been aborted' log) &&
        fail "MPI ended the job: $(cat log)"
    [ ! -e model ] && [ ! -e words.safetensors ] || fail "refused, but something was written"
    echo "$1 beside $2: refused"
}
differ train words
differ words plan
differ plan train

# A verb without MPI: its process ends, and never starts MPI.
timeout 100 bash -c "$(declare -f ranks); launcher=$launcher mpi=$mpi; ranks 1 ${train[*]} --patience 2 : -n 1 $embla help cost" \
    >log 2>&1 </dev/null && fail "train beside help: not refused"
grep -q 'embla: note: help does without MPI' log || fail "$(cat log)"
[ "$mpi" = openmpi ] || grep -q 'embla: MPI waits for a process of the job' log || fail "$(cat log)"
[ ! -e model ] || fail "refused, but something was written"
echo "train beside a verb without MPI: ended"

ranks 2 "${train[@]}" >log 2>&1 || fail "$(cat log)" # the same verb works
[ -e model ] || fail "nothing was written"
