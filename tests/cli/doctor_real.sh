# SPDX-License-Identifier: Apache-2.0
# Real files, where they are.
[[ -d ${EMBLA_DATA-} ]] || { echo "skipped: EMBLA_DATA names no folder"; exit 77; }
cd "$EMBLA_DATA" || exit 1
try doctor stories260k/stories260K.bin
try doctor use-lite-8k
try doctor model2vec-mini/vocab-quantized
try doctor model2vec-mini/float16
try doctor gguf-vocab/ggml-vocab-gpt-2.gguf
try doctor missing
