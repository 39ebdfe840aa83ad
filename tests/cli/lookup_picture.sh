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
# narrow: headings, words and numbers are cut, and no line is too long
COLUMNS=30 embla lookup fox.vec the quick .
COLUMNS=30 embla lookup big.npy.safetensors --ids 0,99999
COLUMNS=29 embla lookup fox.vec the quick . --dim 2
printf '2 3\na-very-long-word 1 2 3\nnext -1000 0 0\n' >long.vec
COLUMNS=36 embla lookup long.vec a-very-long-word next
COLUMNS=31 embla lookup long.vec a-very-long-word next
for width in {30..60}; do
    for file in fox.vec long.vec big.npy.safetensors; do
        export LC_ALL=C # each byte is a column
        COLUMNS=$width embla lookup $file --ids 0,1
        COLUMNS=$width embla lookup $file --ids 0,1 --dim 2
        COLUMNS=$width embla lookup big.npy.safetensors --ids "$(seq -s, 1 1000 20000)"
    done | awk -v most="$width" 'length($0) > most { print most ": " $0 }'
done
# small numbers have more decimals, large ones an exponent, others are spelled
printf '2 3\nsmall 0.01 -0.02 0.0001\nnext 0.05 0 0\n' >small.vec
embla lookup small.vec small
printf '2 3\nlarge 1e10 -12.5 1\nnext 0.05 0 0\n' >large.vec
embla lookup large.vec large
