# SPDX-License-Identifier: Apache-2.0
# Every verb under a limit of address space, from too little to enough: it works or says why not.
# No crash, and no waiting for ever.
. "$SOURCE/tests/cli/models.sh"
fox
seq 300 >numbers.txt
embla train numbers.txt -o m --preset microgpt --steps 20 --ngram-rows 100 -q >/dev/null
awk 'BEGIN { srand(1); print 600, 64; for (i = 0; i < 600; i++) { printf "w%d", i
    for (j = 0; j < 64; j++) printf " %.3f", rand() - 0.5; print "" } }' >words.vec
(ulimit -v 100000 && embla version; exit $?) >/dev/null 2>&1 || { echo "skipped: the program does not start in 100 MB (a sanitizer)"; exit 77; }
limited() { # KILOBYTES COMMAND..
    local most=$1 code
    shift
    (ulimit -v "$most" && OMP_NUM_THREADS=4 timeout 60 embla "$@" >out 2>err </dev/null)
    code=$?
    [[ $code -le 3 ]] || { echo "$most kB: embla $*: exit $code"; tail -n 2 err; }
    [[ $code -eq 0 || -s err || -s out ]] || echo "$most kB: embla $*: exit $code without a word"
}
for most in 20000 30000 45000 60000 80000 100000 130000 160000 200000 250000 300000 350000 400000 \
    450000 500000 600000 700000; do
    rm -rf x.* trained
    limited $most info m
    limited $most doctor m
    limited $most lookup words.vec w1
    limited $most near words.vec w1
    limited $most analogy words.vec w1 - w2 + w3
    limited $most health words.vec
    limited $most spectrum words.vec
    limited $most map words.vec -o x.html
    limited $most diff words.vec words.vec
    limited $most convert words.vec x.safetensors
    limited $most rows m 1 2 3
    limited $most verify m
    limited $most generate m --tokens 20
    limited $most cost gpt2
    limited $most train numbers.txt -o trained --dim 64 --layers 2 --heads 2 --length 32 --batch 4 --steps 2 --any-memory
done
echo "done"
