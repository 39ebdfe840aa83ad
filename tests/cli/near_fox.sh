# SPDX-License-Identifier: Apache-2.0
# The nearest rows: for people, for programs, one list for each token.
. "$SOURCE/tests/cli/models.sh"
fox
try near fox.vec dog --top 3
LC_ALL=C.UTF-8 try near fox.vec dog quick -k 3 --format table
try near fox.vec dog -k 3 --format table
try near fox.vec dog -k 2 --self
try near fox.vec dog '#5' -k 2 --json
for measure in cosine dot euclidean; do
    try near fox.vec dog -k 3 --measure $measure
    try near fox.vec dog -k 3 --measure $measure --format table
done
# only the first rows; more than there are
try near fox.vec dog --rows 3
try near fox.vec dog --rows 1,000 --top 1_000
embla near fox.vec dog --rows 1000 -k 1 --json
# the same for any number of threads
for threads in 1 2 3 7; do
    embla near fox.vec dog fox . --threads $threads | cksum
done
# a vector, several, what another verb prints
try near fox.vec --vector 1,0,0,0,0,0,0,0 -k 2
try near fox.vec --vector '-1 0 0 0 0 0 0 -1e-3' -k 2 --format table
try near fox.vec --vector 1,0,0,0,0,0,0,0 -k 1 --json
embla lookup fox.vec dog fox --plain | cut -f 3 | embla near fox.vec --vector - -k 1
printf 'dog\r\n#5\n' | embla near fox.vec - over -k 1
for i in $(seq 1100); do echo "#$((i % 12))"; done | embla near fox.vec - -k 1 | sort | uniq -c | sort -k 1,1n -k 2
# more than are asked at a time
{ for i in $(seq 1030); do echo "1 0 0 0 0 0 0 0"; done; echo 0 0 0 1 0 0 0 0; } |
    embla near fox.vec --vector - -k 1 | sort | uniq -c | sort -k 1,1n
