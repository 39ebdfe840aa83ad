#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trains a small model with each kind of positions and of head, with three seeds, and writes the
# validation losses into train.md.
#   usage: docs/positions.sh EMBLA TEXT    (TEXT: tinyshakespeare/input.txt)
set -eu
embla=$1
text=$2
doc=$(cd "$(dirname "$0")" && pwd)/train.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

loss() { # positions, head, seed
    "$embla" train "$text" --preset gpt2-mini --layers 2 --heads 4 --dim 64 --length 64 --batch 8 \
        --steps 1500 --rate 3e-3 --threads 1 --positions "$1" "--$2" --seed "$3" -q \
        -o "$work/$1-$2-$3" | sed -n 's/^validation *\([0-9.]*\).*/\1/p'
}

{
    echo '| positions | head | seed 1 | seed 2 | seed 3 | mean (standard deviation) |'
    echo '|---|---|---|---|---|---|'
    for positions in learned sinusoidal rotary none; do
        for head in tied untied; do
            echo "$positions $head $(loss $positions $head 1) $(loss $positions $head 2)" \
                "$(loss $positions $head 3)"
        done
    done | awk '{
        m = ($3 + $4 + $5) / 3
        d = sqrt((($3 - m) ^ 2 + ($4 - m) ^ 2 + ($5 - m) ^ 2) / 2)
        printf "| %s | %s | %s | %s | %s | %.4f (%.4f) |\n", $1, $2, $3, $4, $5, m, d
    }'
} >"$work/table"
awk -v table="$work/table" '
    /<!-- end of positions -->/ { inside = 0 }
    !inside
    /<!-- positions -->/ {
        inside = 1
        while ((getline line <table) > 0) print line
    }' "$doc" >"$work/doc"
cat "$work/doc" >"$doc"
