# SPDX-License-Identifier: Apache-2.0
# The checksum of a fold: printed, required, refused.
fold() { # FILE NUMBER..
    local file=$1 n
    shift
    {
        printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<i4', 'fortran_order': False, 'shape': ($#,), }"
        for n; do printf "\\x$(printf %02x "$n")\\0\\0\\0"; done
    } >"$file"
}
fold good.npy 0 1 0 2 2 1 3 0
fold other.npy 0 1 0 2 1 2 3 0
good=75406ef0c71ba654bdb2bc76667ff860
try rows --model engram-demo --fold good.npy 4 5 | head -3
try rows --model engram-demo --fold good.npy --fold-checksum $good --json 4 | grep -o '"fold_checksum":"[0-9a-f]*"'
try rows --model engram-demo --fold other.npy --fold-checksum $good 4
try rows --model engram-demo --fold other.npy --fold-checksum 1234 4
try rows --model qwen3.8-flash-next --fold-checksum $good 4
