#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A training of the page and one of the program give the same files, for several choices.
#   usage: same_bits.sh PROGRAM TRAINED DEMO
set -eu
program=$1 trained=$2 demo=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
same() { # TEXT "CHOICES" OPTIONS..
    text=$1 choices=$2
    shift 2
    rm -rf "$work/page" "$work/program"
    # shellcheck disable=SC2086
    "$trained" "$demo/$text" "$work/page" $choices >"$work/said"
    "$program" train "$demo/$text" --preset microgpt --engine none -o "$work/program" -q "$@" >"$work/log"
    for file in model.safetensors config.json tokenizer.json; do
        cmp "$work/page/$file" "$work/program/$file"
    done
    echo "$text $choices: the same bytes"
}
same names.txt "0 0 200 0 0 0 0" --steps 200
same names.txt "0 8 30 4 1 7 0.005" --steps 30 --dim 8 --positions none --tied --seed 7 --rate 0.005
same village.txt "300 32 40 2 -1 0 0" --steps 40 --words 300 --dim 32 --positions sinusoidal --untied
same village.txt "0 0 25 3 0 3 0" --steps 25 --positions rotary --seed 3
"$program" tokenizer "$demo/names.txt" -o "$work/pieces.json" --size 300 --special '<|endoftext|>' -q >"$work/log"
same names.txt "0 0 30 0 0 0 0 $work/pieces.json" --steps 30 --tokenizer "$work/pieces.json"
