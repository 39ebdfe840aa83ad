#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A rank is killed while all ranks save: the folder has a complete save, and the job ends. Then a
# rank is stopped: the others notice, name it, and end.
#   usage: kill.sh openmpi|mpich JOB [KILLS]
set -euo pipefail
. "$(dirname "$0")/common.sh"
job=$2
kills=${3:-${EMBLA_MPI_KILLS:-5}}

for ((i = 0; i < kills; i++)); do
    rm -f "$folder/log"
    ranks 3 "$job" saves "$folder/save" >"$folder/log" 2>&1 &
    launched=$!
    for ((k = 0; k < 300; k++)); do
        grep -qs '^saved' "$folder/log" && break
        sleep 0.1
    done
    sleep "0.$((RANDOM % 90 + 10))"
    victims=($(pgrep -f "^$job saves $folder/save\$")) || true
    [ "${#victims[@]}" -gt 0 ] || { echo "kill $i: the job has ended by itself"; cat "$folder/log"; exit 1; }
    kill -9 "${victims[$((RANDOM % ${#victims[@]}))]}"
    begun=$SECONDS
    wait "$launched" && { echo "kill $i: the job did not fail"; exit 1; }
    [ $((SECONDS - begun)) -le 60 ] || { echo "kill $i: the job ended only after $((SECONDS - begun)) s"; exit 1; }
    ranks 2 "$job" check "$folder/save" >"$folder/checked" || { echo "kill $i: no complete save"; exit 1; }
    last=$(grep -c '^saved' "$folder/log") || true # this job's saves are 1, 2, ..
    found=$(sed -n 's/^save \([0-9]*\)$/\1/p' "$folder/checked")
    [ "$found" = "$last" ] || [ "$found" = $((last + 1)) ] ||
        { echo "kill $i: save $last was complete, but the folder has $found"; exit 1; }
    rm -r "$folder/save"
done
echo "$kills kills"

stop_one() { # VERB
    rm -f "$folder/log"
    PATIENCE=3 ranks 3 "$job" "$1" 60 >"$folder/log" 2>&1 &
    launched=$!
    for ((k = 0; k < 300; k++)); do
        grep -qs '^started' "$folder/log" && break
        sleep 0.1
    done
    victims=($(pgrep -f "^$job $1 60\$"))
    kill -STOP "${victims[1]}"
    begun=$SECONDS
    wait "$launched" && { echo "$1: the job went on without a rank"; exit 1; }
    took=$((SECONDS - begun))
    kill -9 "${victims[@]}" 2>/dev/null || true
    grep -E 'rank [0-9] of 3 waited 3 seconds for .*; no answer from rank [0-9]' "$folder/log" || { cat "$folder/log"; exit 1; }
    [ "$took" -le 30 ] || { echo "$1: it took $took s"; exit 1; }
    echo "$1: a stopped rank was noticed after $took s"
}
stop_one waits
# without abort: what it shared and the communicator are closed, and nobody waits for the lost rank
stop_one leaves
grep 'rank [0-9] has left' "$folder/log" || { cat "$folder/log"; exit 1; }
