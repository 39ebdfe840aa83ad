#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the files of the demo with embla and python3, in less than a minute.
#   usage: demo/make.sh EMBLA FOLDER [story]
# With the word story: only village.txt, story/ and words.vec, which takes a second or two. The
# files in this folder were made so. Every CPU gives the same bytes: no matrix library computes.
set -eu
embla=$1
out=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

cp -f "$here/names.txt" "$here/five.vec" "$here/fox.vec" "$out" 2>/dev/null || [ -s "$out/fox.vec" ]
python3 "$here/village.py" "$out/village.txt"

# keep MODEL: what other programs need, without checkpoints and the log
keep() {
    rm -rf "${out:?}/$1"
    mkdir "$out/$1"
    cp "$work/$1/config.json" "$work/$1/tokenizer.json" "$work/$1/model.safetensors" "$out/$1"
}

# the model of words; words.vec is its table, without the rows <unk> and <bos>
"$embla" train "$out/village.txt" --preset microgpt --words 300 --dim 32 --batch 4 --steps 4000 --threads 1 \
    --engine none -o "$work/story" -q
keep story
"$embla" convert "$out/story" "$out/words.vec" --rows 300 --force -q >"$work/log"

[ "${3-}" = story ] && exit
"$embla" train "$out/names.txt" --preset microgpt --engine none -o "$work/names" -q
keep names
"$embla" train "$out/village.txt" --documents --layers 2 --heads 2 --dim 32 --length 64 --batch 16 \
    --steps 1200 --rate 0.004 --ngram-rows 2000 --ngram-heads 2 --engine none -o "$work/village" -q
keep village
