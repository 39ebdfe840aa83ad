# SPDX-License-Identifier: Apache-2.0
# Real files, where they are: the published pairs on GloVe and on tables of models, and
# Google's questions among the most frequent words (test_eval.c has all of them).
[[ -d ${EMBLA_DATA-} ]] || { echo "skipped: EMBLA_DATA names no folder"; exit 77; }
command -v xz >/dev/null || { echo "skipped: there is no xz"; exit 77; }
xz -dc "$EMBLA_DATA"/glove-50k/*.xz >glove.txt || { echo "skipped: no glove-50k"; exit 77; }
ln -s "$EMBLA_DATA/use-lite-8k" "$EMBLA_DATA/stories260k/stories260K.bin" \
    "$EMBLA_DATA/stories260k/tok512.bin" "$EMBLA_DATA/word-eval" .
try eval glove.txt word-eval/EN-*.txt
try eval glove.txt word-eval/questions-words.txt --rows 3000
try eval use-lite-8k word-eval
try eval stories260K.bin word-eval/EN-RG-65.txt word-eval/EN-MEN-TR-3k.txt
