# SPDX-License-Identifier: Apache-2.0
# Kinds of positions and heads: what is written, and that a saved model opens as it was.
seq 300 >numbers.txt
shape=(--layers 1 --heads 2 --dim 16 --length 8 --batch 2 --threads 1 --steps 20)
for preset in gpt2-mini llama-mini; do
    for positions in learned sinusoidal rotary none; do
        for head in tied untied; do
            name=$preset-$positions-$head
            embla train numbers.txt -o $name --preset $preset "${shape[@]}" \
                --positions $positions --$head >out
            echo "$name: $(grep -o '"model_type": "[a-z0-9]*"' $name/config.json)" \
                "$(grep -c '^format' out)"
            grep -oE "8 [a-z]+ positions|$positions positions" out | head -n 1
            grep -oE '(tied|separate) head' out
            # opened again it has the same loss
            embla train numbers.txt -o again-$name --from $name --steps 0 -q >again
            cmp <(grep '^validation' out) <(grep '^validation' again) && echo "the same"
            embla generate $name --tokens 4 --seed 1 >/dev/null || echo "silent"
        done
    done
done
embla train numbers.txt -o x "${shape[@]}" --positions rotary | grep '^format'
embla train numbers.txt -o y "${shape[@]}" --positions rotary --json | grep -o '"model_type":"[a-z]*"'
# what does not fit
try train numbers.txt -o no --tied --untied
try train numbers.txt -o no --positions alibi
try train numbers.txt -o no --positions rotary --dim 15 --heads 3
try train numbers.txt -o no --from x --positions none
try train numbers.txt -o no --from x --untied
try train --resume x --tied
