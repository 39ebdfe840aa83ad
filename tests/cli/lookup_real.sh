# SPDX-License-Identifier: Apache-2.0
# Real files, where they are.
[[ -d ${EMBLA_DATA-} ]] || { echo "skipped: EMBLA_DATA names no folder"; exit 77; }
cd "$EMBLA_DATA" || exit 1
export LC_ALL=C.UTF-8
unset COLUMNS
try lookup stories260k/stories260K.bin ' he' ' she' '#0'
try lookup use-lite-8k ' dog' ' Monday' '#8001'
try lookup use-lite-8k dog Monday
try lookup model2vec-mini/vocab-quantized ' hello' --dim 4
try lookup model2vec-mini/float16 hello world --plain
try lookup gguf-vocab/ggml-vocab-gpt-2.gguf the
