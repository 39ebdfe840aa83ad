# SPDX-License-Identifier: Apache-2.0
# stories260k: 169 rows that training never met share one direction.
[[ -n ${EMBLA_DATA-} ]] || { echo "skipped: EMBLA_DATA is not set"; exit 77; }
unset COLUMNS
embla health "$EMBLA_DATA/stories260k/stories260K.bin" --top 5
echo "exit $?"
embla health "$EMBLA_DATA/use-lite-8k/model.safetensors" --top 3
echo "exit $?"
