# SPDX-License-Identifier: Apache-2.0
# Tables that people trained, where they are.
[[ -d ${EMBLA_DATA-} ]] || { echo "skipped: EMBLA_DATA names no folder"; exit 77; }
cd "$EMBLA_DATA" || exit 1
export LC_ALL=C.UTF-8
try spectrum stories260k/stories260K.bin --top 5
try spectrum stories260k/stories260K.bin --centred --top 5
try spectrum use-lite-8k --top 5
