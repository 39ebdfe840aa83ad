# SPDX-License-Identifier: Apache-2.0
# A number that is not one is refused by name and value.
for number in -5 -0 '' ' 5' 5x 0x10 1e3 1.5 128K 128k 3M 1,28 1,2345 ,128 128, 1,000_000 1__000 \
    9223372036854775808 99999999999999999999999999999999999999999; do
    try cost --dim 4 --rows="$number"
done
try cost --rows 9223372036854775807 --dim 4
try cost --rows 4 --dim 9223372036854775807
try cost --rows 4 --dim 4 --trunk 9223372036854775807
try cost --rows 4 --dim 3037000500 --layers 1
try cost --rows 0 --dim 4
try cost --rows 10 --dim 10 --dtype q8_0
try cost gpt2 --threads 99999999999 | sed "s/machine is [0-9]*/machine is N/"
try cost gpt2 --total 5
