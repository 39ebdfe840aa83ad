#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# embla words on 1, 2, 3 and 4 ranks, with 1 and 2 threads, skip-gram, CBOW and n-grams: the file has
# the bytes of one process. An interrupted training is continued by another number of ranks.
#   usage: words.sh openmpi|mpich EMBLA
set -euo pipefail
. "$(dirname "$0")/common.sh"
embla=$2
cd "$folder"
seq 1 60000 | awk '{ x = (x * 1103515245 + 12345) % 2147483648; printf "w%d%s", x % (1 + NR % 900), x % 11 ? " " : "\n" }' >text

fail() {
    echo "$*"
    exit 1
}

case_of() { # LABEL OPTIONS..
    local label=$1 n threads
    shift
    "$embla" words text "$@" --force -q -o alone.safetensors
    for n in 1 2 3 4; do
        for threads in 1 2; do
            chosen "$n" "$threads" || continue
            ranks "$n" "$embla" words text "$@" --threads "$threads" --force -q -o ranks.safetensors >log 2>&1 ||
                fail "$label, $n ranks x $threads threads: $(cat log)"
            cmp alone.safetensors ranks.safetensors || fail "$label, $n ranks x $threads threads"
        done
    done
    echo "$label: $(sha256sum <alone.safetensors | cut -c1-64)"
}

case_of skip-gram --epochs 2
if every_case; then
    case_of cbow --kind cbow --epochs 2
    case_of n-grams --subwords 2-4 --epochs 1
fi

# One line of output for all ranks, and one message
ranks 4 "$embla" words text --epochs 1 --force -o said.safetensors >log 2>&1
[ "$(grep -c '^written ' log)" = 1 ] || fail "$(cat log)"
[ "$(grep -c '^ranks  *4 ranks' log)" = 1 ] || fail "$(cat log)"
refused() { # SENTENCE OPTIONS..
    local sentence=$1
    shift
    ranks 2 "$embla" words "$@" >log 2>&1 </dev/null && fail "not refused: $*"
    [ "$(grep -c 'embla: ' log)" = 1 ] && grep -q "embla: $sentence" log || fail "$(cat log)"
}
refused 'hogwild works in one process only, and there are 2 ranks' text --hogwild -o none.safetensors
refused '2 processes cannot read one standard input' - -o none.safetensors
refused 'nowhere' nowhere -o none.safetensors
[ ! -e none.safetensors ] || fail "refused, but something was written"
echo "messages: one"

# A rank is stopped: the others name it and end. What was saved is continued by other ranks.
long=(text --epochs 40 --save-every 1 --force -o long.safetensors)
"$embla" words "${long[@]}" -q
mv long.safetensors whole.safetensors
ranks 3 "$embla" words "${long[@]}" --patience 3 -q >log 2>&1 &
launched=$!
for ((k = 0; k < 600; k++)); do
    [ -e long.safetensors.state ] && break
    sleep 0.05
done
sleep 0.5
victims=($(pgrep -f "^$embla words text --epochs 40 .* -q\$"))
kill -STOP "${victims[1]}"
wait "$launched" && fail "the job went on without a rank"
kill -9 "${victims[1]}" 2>/dev/null || true
grep -q 'waited 3 seconds for .*; no answer from rank [0-9]' log || fail "$(cat log)"
ranks 2 "$embla" words "${long[@]}" --resume -q >log 2>&1 || fail "$(cat log)"
cmp whole.safetensors long.safetensors
echo "stopped, and continued by others"
