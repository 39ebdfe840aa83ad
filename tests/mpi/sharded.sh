#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Steps with each optimizer on 1, 2, 3 and 4 ranks, 1 and 2 threads, with rows sent and with rows
# in shared memory: the same loss and the same rows, bit for bit. A save of P ranks is continued by Q.
# EMBLA_MPI_STEPS is the number of steps.
#   usage: sharded.sh openmpi|mpich JOB
set -euo pipefail
. "$(dirname "$0")/common.sh"
job=$2
steps=${EMBLA_MPI_STEPS:-10}
ranks 2 "$job" name
PATIENCE=20 ranks 3 timeout 100 "$job" starves

same() { # LABEL: loss and rows of $folder/now are those of the first run of this optimizer
    sum=$(sha256sum <"$folder/now/rows.safetensors" | cut -c1-64)
    if [ -z "$first" ]; then
        first="$loss $sum"
        echo "$optimizer $dtype: $first"
    elif [ "$first" != "$loss $sum" ]; then
        echo "$optimizer $dtype, $1: $loss $sum"
        exit 1
    fi
}

for which in "sgd f32" "adagrad-rowwise f32" "adamw f32" "adamw bf16"; do
    read -r optimizer dtype <<<"$which"
    first=
    for n in 1 2 3 4; do
        for threads in 1 2; do
            chosen "$n" "$threads" || continue
            mkdir -p "$folder/now"
            unset SEND
            [ "$n" != 2 ] && [ "$threads" = 1 ] || export SEND=1
            loss=$(ranks "$n" "$job" train "$optimizer" "$dtype" "$steps" "$threads" "$folder/now")
            same "$n ranks x $threads threads"
            unset SEND
            q=$((5 - n))
            loss=$(ranks "$q" "$job" load "$optimizer" "$dtype" "$steps" 1 "$folder/now")
            same "saved by $n ranks, continued by $q"
            rm -r "$folder/now"
        done
    done
done
