# SPDX-License-Identifier: Apache-2.0
# Real files, where they are: the neighbours that are known.
[[ -d ${EMBLA_DATA-} ]] || { echo "skipped: EMBLA_DATA names no folder"; exit 77; }
cd "$EMBLA_DATA" || exit 1
export LC_ALL=C.UTF-8
short() { awk -F '\t' 'NF { printf "%s %s %.4f\n", $1, $2, $4; next } { print }'; }
embla near use-lite-8k ' dog' ' Monday' -k 4 | short
embla near stories260k/stories260K.bin ' he' -k 3 | short
embla near stories260k/stories260K.bin ' he' -k 3 --format table
try near use-lite-8k Mondya
try near model2vec-mini/vocab-quantized ' helo'
embla near model2vec-mini/vocab-quantized ' hello' -k 2 --format table
