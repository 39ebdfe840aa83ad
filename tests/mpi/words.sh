#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# embla words under mpirun: one process learns the words, several are refused before they write.
#   usage: words.sh openmpi|mpich EMBLA
set -euo pipefail
. "$(dirname "$0")/common.sh"
embla=$2
cd "$folder"
seq 1 2000 | awk '{ printf "w%d%s", $1 % 40, $1 % 7 ? " " : "\n" }' >text

fail() {
    echo "$*"
    exit 1
}

refused() { # OPERAND
    code=0
    ranks 2 "$embla" words "$1" -q -o words.safetensors >log 2>&1 </dev/null || code=$?
    [ "$code" = 2 ] || fail "$1: code $code: $(cat log)"
    [ "$(grep -c 'embla: ' log)" = 1 ] || fail "$1: $(cat log)"
    grep -q 'embla: words are learned by one process, and this job has 2; start' log || fail "$(cat log)"
    [ -z "$(ls words* 2>/dev/null)" ] || fail "refused, but something was written"
}
refused text
refused -
echo "two processes: refused"

"$embla" words text -q -o alone.safetensors
ranks 1 "$embla" words text -q -o job.safetensors >log 2>&1 || fail "$(cat log)"
cmp alone.safetensors job.safetensors
ranks 1 "$embla" words - -q -o input.safetensors <text >log 2>&1 || fail "$(cat log)"
cmp alone.safetensors input.safetensors
echo "one process: the same file"
