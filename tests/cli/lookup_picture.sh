# SPDX-License-Identifier: Apache-2.0
# The picture: five tokens of twelve rows, in ASCII and in box characters, narrow and wide.
. "$SOURCE/tests/cli/models.sh"
fox
embla lookup fox.vec the quick brown fox .
export LC_ALL=C.UTF-8
embla lookup fox.vec the quick brown fox .
COLUMNS=120 embla lookup fox.vec the quick brown fox .
COLUMNS=40 embla lookup fox.vec the the fox
embla lookup fox.vec '#3' --dim 2
# a large table: the rows asked for and their neighbours
make_model big.npy.safetensors a.weight:F32:100000x300
embla lookup big.npy.safetensors --ids 0,99999,41234,41234
embla lookup big.npy.safetensors --ids "$(seq -s, 1 1000 20000)"
# small numbers have more decimals, large ones an exponent, others are spelled
printf '2 3\nsmall 0.01 -0.02 0.0001\nnext 0.05 0 0\n' >small.vec
embla lookup small.vec small
printf '2 3\nlarge 1e10 -12.5 1\nnext 0.05 0 0\n' >large.vec
embla lookup large.vec large
