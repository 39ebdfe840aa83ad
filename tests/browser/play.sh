# SPDX-License-Identifier: Apache-2.0
# The page that play.mjs opens, and what the program says of the same models and trainings; run.sh runs
# this in an empty folder.
module=$here/../../build/play/play.wasm.gz
[[ -e $module ]] || skip "the module of the page is not here; packaging/wasm makes it"
export EMBLA_PLAY=${module%/*} EMBLA_DEMO=$here/../../demo EMBLA_PROGRAM=$program
"$program" play -o play.html --quiet || exit 1
cp -r "$EMBLA_DEMO" demo
(
    cd demo || exit 1
    train() { # NAME TEXT OPTIONS..: its SHA-256
        "$program" train "$2" --preset microgpt --engine none -o "../$1" -q "${@:3}" >/dev/null || exit 1
        sha256sum <"../$1/model.safetensors" | cut -d ' ' -f 1 >"../$1.sum"
    }
    train letters names.txt --steps 200
    train words village.txt --words 300 --steps 60 --dim 32 --positions sinusoidal --tied
    "$program" tokenizer names.txt -o ../pieces.json --size 317 --special '<|endoftext|>' -q >/dev/null || exit 1
    train pieces names.txt --tokenizer ../pieces.json --steps 60 --positions rotary --seed 3
    "$program" lookup story the cat sat --format tsv >../lookup.tsv &&
        "$program" near words.vec cat --top 10 >../near.tsv &&
        "$program" predict story "the cat sat on a" --top 10 --json >../predict.json
) || exit 1
