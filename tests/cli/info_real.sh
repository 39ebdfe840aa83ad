# SPDX-License-Identifier: Apache-2.0
# Real files, where they are.
[[ -d ${EMBLA_DATA-} ]] || { echo "skipped: EMBLA_DATA names no folder"; exit 77; }
cd "$EMBLA_DATA" || exit 1
try info stories260k/stories260K.bin
try info use-lite-8k
try info model2vec-mini/vocab-quantized
try info model2vec-mini/int8
try info gguf-vocab/ggml-vocab-phi-3.gguf
