#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# embla train on 1, 2, 3 and 4 ranks, with 1 and 2 threads: the checkpoint has the same bytes. With
# --fast the losses are the same to 1e-5. Another number of ranks continues with the same bits.
#   usage: train.sh openmpi|mpich EMBLA
set -euo pipefail
. "$(dirname "$0")/common.sh"
embla=$2
steps=${EMBLA_MPI_TRAIN_STEPS:-20}
names=${EMBLA_DATA:-}/names/names.txt
book=${EMBLA_DATA:-}/tinyshakespeare/input.txt
cd "$folder"
[ -e "$names" ] || { names=$folder/names.txt && seq 100 5000 | tr 0-9 a-j >"$names"; }
[ -e "$book" ] || { book=$folder/book.txt && seq 20000 | tr 0-9 '\nb-j' >"$book"; }

fail() {
    echo "$*"
    exit 1
}

sum_of() { # FOLDER: of its last checkpoint
    sha256sum <"$1/checkpoints/step-$(printf %010d "$steps").safetensors" | cut -c1-64
}

# The largest difference of two losses of the same step.
apart() {
    paste -d, <(cut -d, -f2 "$1/loss.csv") <(cut -d, -f2 "$2/loss.csv") |
        awk -F, 'NR > 1 { d = $1 - $2; if (d < 0) d = -d; if (!(d <= m)) m = d } END { print m + 0 }'
}

case_of() { # LABEL OPTIONS..
    local label=$1 first now n threads q
    shift
    set -- "$@" --steps "$steps" --save-every $((steps / 2)) # the note of a checkpoint has both
    rm -rf whole
    "$embla" train "$@" --micro-batches 12 -q -o whole >/dev/null
    first=$(sum_of whole)
    echo "$label: $first"
    for n in 1 2 3 4; do
        for threads in 1 2; do
            chosen "$n" "$threads" || continue
            rm -rf now
            ranks "$n" "$embla" train "$@" --threads "$threads" -q -o now >log 2>&1 ||
                fail "$label, $n ranks x $threads threads: $(cat log)"
            now=$(sum_of now)
            [ "$now" = "$first" ] || fail "$label, $n ranks x $threads threads: $now"
        done
        cmp whole/model.safetensors now/model.safetensors
        cmp <(cut -d, -f1-6 whole/loss.csv) <(cut -d, -f1-6 now/loss.csv)
        # half of it, then another number of ranks
        chosen "$n" 2 || continue
        q=$((5 - n))
        rm -rf now
        ranks "$n" "$embla" train "$@" -q -o now >log 2>&1
        rm "now/checkpoints/step-$(printf %010d "$steps").safetensors"
        ranks "$q" "$embla" train --resume now -q >log 2>&1 || fail "$label, resumed: $(cat log)"
        [ "$(sum_of now)" = "$first" ] || fail "$label: $n ranks, continued by $q"
    done
    rm -rf now
    ranks 3 "$embla" train "$@" --fast -q -o now >log 2>&1 || fail "$(cat log)"
    echo "$label, --fast: losses differ by up to $(apart whole now)"
    awk -v d="$(apart whole now)" 'BEGIN { exit !(d <= 1e-5) }' || fail "that is too much"
}

tiny=(--preset gpt2-mini --layers 1 --heads 2 --dim 32 --length 32 --batch 12)
case_of names "$names" --preset microgpt --batch 12
if every_case; then case_of tinyshakespeare "$book" "${tiny[@]}"; fi
# names in which each rank has other n-gram rows, and each shard its own dropout
rm -rf one two
line=("$names" "${tiny[@]}" --documents --dropout 0.1 --ngram-rows 2000 --steps 20 --threads 1 -q)
"$embla" train "${line[@]}" --micro-batches 12 -o one >/dev/null
ranks 3 "$embla" train "${line[@]}" -o two >log 2>&1 || fail "$(cat log)"
cmp one/checkpoints/step-0000000020.safetensors two/checkpoints/step-0000000020.safetensors

# the same with the table divided: the model is the same for any number of ranks, and continued by
# another number after half of the steps
for n in 1 2 4; do
    rm -rf three
    ranks "$n" "$embla" train "${line[@]}" --shard-ngrams --save-every 10 -o three >log 2>&1 || fail "$(cat log)"
    cmp one/model.safetensors three/model.safetensors || fail "--shard-ngrams, $n ranks"
    rm -r three/checkpoints/step-0000000020.safetensors*
    ranks $((5 - n)) "$embla" train --resume three -q >log 2>&1 || fail "--shard-ngrams, resumed: $(cat log)"
    cmp one/model.safetensors three/model.safetensors || fail "--shard-ngrams, $n ranks continued by $((5 - n))"
done
echo "--shard-ngrams: the same model"

# token rows and a separate head divided: the model and the losses are the same for any number of ranks
# and threads, also if another number continues; the losses are those of whole tables to 1e-4
line=("$names" --preset microgpt --batch 12 --steps "$steps" --save-every $((steps / 2)) -q)
"$embla" train "${line[@]}" --micro-batches 12 -o whole-rows >/dev/null
"$embla" train "${line[@]}" --shard-tokens -o rows >/dev/null
echo "--shard-tokens: $(sha256sum <rows/model.safetensors | cut -c1-64)"
for n in 1 2 3 4; do
    for threads in 1 2; do
        chosen "$n" "$threads" || continue
        rm -rf now
        ranks "$n" "$embla" train "${line[@]}" --shard-tokens --threads "$threads" -o now >log 2>&1 ||
            fail "--shard-tokens, $n ranks x $threads threads: $(cat log)"
        cmp rows/model.safetensors now/model.safetensors || fail "--shard-tokens, $n ranks x $threads threads"
        cmp <(cut -d, -f1-6 rows/loss.csv) <(cut -d, -f1-6 now/loss.csv)
    done
    [ $((n % 3)) = 1 ] || continue
    rm -r now/checkpoints/step-"$(printf %010d "$steps")".safetensors*
    ranks $((5 - n)) "$embla" train --resume now -q >log 2>&1 || fail "--shard-tokens, resumed: $(cat log)"
    cmp rows/model.safetensors now/model.safetensors || fail "--shard-tokens, $n ranks continued by $((5 - n))"
done
awk -v d="$(apart whole-rows rows)" 'BEGIN { exit !(d <= 1e-4) }' || fail "not the losses of whole tables"
rm -rf now
ranks 3 "$embla" train "${line[@]}" --shard-tokens --fast -o now >log 2>&1 || fail "$(cat log)"
echo "--shard-tokens: losses of whole tables to $(apart whole-rows rows), with --fast to $(apart rows now)"
awk -v d="$(apart rows now)" 'BEGIN { exit !(d <= 1e-5) }' || fail "that is too much"

# One line of output for all ranks, and one message
ranks 4 "$embla" train "$names" --preset microgpt --batch 12 --steps 10 -o said >log 2>&1
[ "$(grep -c '^ranks  *4 ranks' log)" = 1 ] || fail "$(cat log)"
[ "$(grep -c '^loss ' log)" = 1 ] || fail "$(cat log)"
ranks 3 "$embla" train nowhere.txt -o none >log 2>&1 && fail "a text that does not exist"
[ "$(grep -c 'embla: ' log)" = 1 ] || fail "$(cat log)"
ranks 3 "$embla" train "$names" --preset microgpt --batch 2 -o none >log 2>&1 && fail "2 sequences"
grep -q 'embla: 3 ranks, but a batch of 2 sequences has only 2 micro-batches' log || fail "$(cat log)"
[ ! -e none ] || fail "refused, but something was written"
echo "messages: one"

# A rank is killed: the job ends, and its last checkpoint is continued
lose() { # NAME SIGNAL STEPS OPTIONS..: kill a rank of a job that trains for ever, after its first checkpoint
    local name=$1 signal=$2 steps=$3
    shift 3
    ranks 3 "$embla" train "$names" --steps 100000000 --save-every "$steps" --patience 3 -q "$@" -o "$name" >log 2>&1 &
    launched=$!
    for ((k = 0; k < 600; k++)); do
        # any step but 0: a later checkpoint may have replaced the first one already
        compgen -G "$name/checkpoints/step-*[1-9]*.safetensors" >/dev/null && break
        sleep 0.1
    done
    sleep 0.2
    victims=($(pgrep -f "^$embla train $names .* $name\$"))
    kill "-$signal" "${victims[1]}"
    begun=$SECONDS
    wait "$launched" && fail "the job went on without a rank"
    kill -9 "${victims[1]}" 2>/dev/null || true
    [ $((SECONDS - begun)) -le 60 ] || fail "the job ended only after $((SECONDS - begun)) s"
    cp log lost.log
    last=$(ls "$name/checkpoints" | sed -n 's/step-0*\([0-9]*\)\.safetensors$/\1/p' | sort -n | tail -n 1)
    ranks 2 "$embla" train --resume "$name" --steps $((last + 10)) >log 2>&1 || fail "$(cat log)"
    grep -q '^ranks  *2 ranks' log || fail "$(cat log)"
    echo "$name after step $last or later, and continued"
}

lose killed 9 50 --preset microgpt --batch 12
lose killed-sharded 9 50 "${tiny[@]}" --documents --ngram-rows 2000 --shard-ngrams --shard-tokens
# a rank that is only stopped is named; not while ranks save, when they wait for each other much longer
lose stopped STOP 5000 --preset microgpt --batch 12
grep -q 'waited 3 seconds for .*; no answer from rank [0-9]' lost.log || fail "$(cat lost.log)"
