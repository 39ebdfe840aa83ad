# SPDX-License-Identifier: Apache-2.0
# Small checkpoints for the cases, made by make_model, which is built beside them.
MAKE_MODEL=${MAKE_MODEL:-$(dirname "$(realpath "$(command -v embla)")")/tests/cli/make_model}
[[ -x $MAKE_MODEL ]] || { echo "skipped: make_model is not built"; exit 77; }
unset COLUMNS NO_COLOR # pictures are as wide as a plain terminal

# make_model OUT TENSOR..: see make_model.c
make_model() { "$MAKE_MODEL" "$@"; }

# words N [PREFIX]: a vocab.txt of N words, w0 w1 ..
words() { for ((i = 0; i < $1; i++)); do echo "${2:-w}$i"; done; }

# folder NAME 'CONFIG': a model's folder with its config.json
folder() {
    mkdir -p "$1"
    echo "$2" >"$1/config.json"
}

# fox: the twelve rows of demo/fox.vec, here
fox() { cp "$SOURCE/demo/fox.vec" fox.vec; }
