# SPDX-License-Identifier: Apache-2.0
# For programs: one object on each line, the first and the last of them of another kind.
mask() {
    sed -E -e "s|$PWD/||" -e 's/"(seconds|tokens_per_second)":[0-9.e+-]+/"\1":0/g' \
        -e 's/"threads":[0-9]+/"threads":0/'
}
seq 300 >numbers.txt
embla train numbers.txt --preset microgpt -o numbers --steps 4 --every 2 --validation 0.1 --json \
    --threads 1 | mask
# quiet: the end alone
embla train numbers.txt --preset microgpt -o quiet --steps 4 --json -q --threads 1 |
    grep -o '"event":"[a-z]*"'
# rows that are watched are part of it
embla train numbers.txt --preset microgpt -o watched --steps 4 --every 4 --json --watch '1,#10' |
    grep -o '"rows":\[{"token":"1","id":1,"asked":true\|"token":null,"id":10,"asked":true'
