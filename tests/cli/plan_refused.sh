# SPDX-License-Identifier: Apache-2.0
# What is missing, wrong or too large is named; nothing is computed from nonsense.
try plan
try plan --rows 5
try plan --rows 5 --dim 0
try plan --rows 0 --dim 4
for rows in x 1e 1e400 1.5 -5 10Q '10 B' 1,00 0x10 nan 1e30 4611686018427387904; do
    try plan --dim 4 --rows "$rows"
done
try plan --rows 5 --dim 2147483648
try plan --rows 1e12 --dim 1M
try plan --rows 5 --dim 4 --tokens 1e18
try plan --rows 5 --dim 4 --tokens 1M --per-token 1M
try plan --rows 5 --dim 4 --network 25
try plan --rows 5 --dim 4 --network 25G
try plan --rows 5 --dim 4 --network 0GB/s
try plan --rows 5 --dim 4 --latency 2
try plan --rows 5 --dim 4 --memory 12elephants
try plan --rows 5 --dim 4 --zipf 11
try plan --rows 5 --dim 4 --unique 0
try plan --rows 5 --dim 4 --unique 2
try plan --rows 5 --dim 4 --hosts 100k
try plan --rows 5 --dim 4 --hosts 0
try plan --rows 5 --dim 4 --hosts 4 --group 3
try plan --rows 5 --dim 4 --optimizer lion
try plan --rows 5 --dim 32 --dtype q4_0
try plan --rows 5 --dim 33 --dtype q4_0 --optimizer none
try plan --rows 5 --dim 4 --ranks 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17
try plan --rows 5 --dim 4 --ranks 0
try plan --rows 5 --dim 4 --ranks 1000000
try plan --rows 5 --dim 4 --ranks many
try plan --rows 5 --dim 4 --tokens 1G --simulate
try plan model --rows 5 --dim 4
