# SPDX-License-Identifier: Apache-2.0
# The first rows of a table, with their words, to every format; what cannot be cut.
cp -r "$SOURCE"/demo/words.vec "$SOURCE"/demo/village .
for out in ten.vec ten.npy ten.safetensors ten.gguf ten.txt; do
    embla convert words.vec $out --rows 10 --force -q | sed -n 3,4p
    cmp <(embla lookup words.vec '#0' '#9' --format text) <(embla lookup $out '#0' '#9' --format text) && echo "same rows"
    embla lookup $out '#10' 2>&1 | head -n 1
done
embla convert words.vec bf.safetensors --rows 10 --dtype bf16 -q | sed -n 3,4p
embla convert words.vec all.npy --rows 1000000 -q | sed -n 3,4p
embla convert "village" cut.safetensors --rows 5 || echo "exit $?"
embla convert "village::wte" cut.npy --rows 5 -q | sed -n 3,4p
embla convert ten.gguf five.gguf --rows 5 || echo "exit $?"
embla convert words.vec no.npy --rows -5 || echo "exit $?"
