# SPDX-License-Identifier: Apache-2.0
# Every integer option of every verb refuses what is no integer of its range, or works.
embla demo -o W >/dev/null
(cd W && embla trace village t h e -o t.npy -q)
python3 "$SOURCE/tests/cli/numbers.py" "$(command -v embla)" W
try plan --rows 1e6 --dim 8 --ranks 9223372036854775808
try plan --rows 1e6 --dim 8 --ranks 4,9223372036854775807
try plan --rows 1e6 --dim 8 --ranks 65537
try rows W/village t h e --layer 2147483648
try verify W/village --layer 2147483648
