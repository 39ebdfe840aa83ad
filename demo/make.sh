#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the files of the demo with embla and python3, in about a minute.
#   usage: demo/make.sh EMBLA FOLDER
# The files in this folder were made so. Another CPU may give other last digits, because the matrix
# library adds in another order there.
set -eu
embla=$1
out=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

cp -f "$here/names.txt" "$out/names.txt" 2>/dev/null || [ -s "$out/names.txt" ]
python3 "$here/village.py" "$out/village.txt" "$work/words.npy" "$work/words.vocab.txt"

# keep MODEL: what other programs need, without checkpoints and the log
keep() {
    rm -rf "${out:?}/$1"
    mkdir "$out/$1"
    cp "$work/$1/config.json" "$work/$1/tokenizer.json" "$work/$1/model.safetensors" "$out/$1"
}
"$embla" train "$out/names.txt" --preset microgpt -o "$work/names" -q
keep names
"$embla" train "$out/village.txt" --documents --layers 2 --heads 2 --dim 32 --length 64 --batch 16 \
    --steps 1200 --rate 0.004 --ngram-rows 2000 --ngram-heads 2 -o "$work/village" -q
keep village

# one token for each word: the table of this model has the rows of words.vec
"$embla" train "$work/words.npy" --tokens-file --layers 1 --heads 2 --dim 32 --length 16 --batch 64 \
    --steps 1000 --rate 0.01 -o "$work/model" -q
mkdir "$work/table"
cp "$work/words.vocab.txt" "$work/table"
"$embla" convert "$work/model::transformer.wte.weight" "$work/table/words.npy" -q >"$work/log"
"$embla" convert "$work/table/words.npy" "$out/words.vec" --force -q >"$work/log"
