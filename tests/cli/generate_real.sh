# SPDX-License-Identifier: Apache-2.0
# A real model, where it is: at temperature 0 its text is known.
[[ -d ${EMBLA_DATA-} ]] || { echo "skipped: EMBLA_DATA names no folder"; exit 77; }
. "$SOURCE/tests/cli/generate_model.sh"
model=$EMBLA_DATA/stories260k/stories260K.bin
embla generate "$model" --temperature 0 --tokens 200 | cmp - "$EMBLA_DATA/stories260k/greedy-200.txt" && echo same
embla generate "$model" --temperature 0 --tokens 196 --prompt 'Once upon a time' --threads 2 |
    cmp - "$EMBLA_DATA/stories260k/greedy-200.txt" && echo same
embla generate "$model" --temperature 0 --tokens 8 --prompt 'The dog said: "é"' --json | timeless
embla generate "$model" --tokens 100000 --seed 2 --count 2 --json |
    grep -o '"stopped":"[a-z]*"'
