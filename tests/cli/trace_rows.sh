# SPDX-License-Identifier: Apache-2.0
# Row numbers are recorded, counted, and read from disk again. Times and the reader differ.
. "$SOURCE/tests/cli/models.sh"
make_model giant g
steady() {
    sed -E -e 's/p50 [0-9.]+ ms, p99 [0-9.]+ ms/p50 T ms, p99 T ms/' -e 's/blocked for [0-9.]+/blocked for T/' \
        -e 's/(io_uring|pread|buffered), up to [0-9]+ reads/READER, up to N reads/' \
        -e 's/grew by .*/grew by N/' -e 's/cache_growth":[0-9]+/cache_growth":N/' \
        -e 's/"reader":"[a-z_]+","depth":[0-9]+/"reader":R,"depth":N/' -e 's/_ns":[0-9]+/_ns":T/g'
}
try trace g 1 2 3 1 2 3 1 2 -o t.npy
try trace g 1 2 3 1 2 3 1 2 --hot 9 -o hot.npy
try trace g --ids 1,2 -o t.npy
try trace g --ids 1,2 -o u.npy --json
try trace g --replay t.npy | steady
try trace g --replay t.npy --hot-bytes 16KiB --hot-file hot.npy --json | steady
try trace g --replay t.npy --hot-file hot.npy
try trace g --replay g/config.json
try trace g --replay t.npy --hot-bytes 10
try trace g 5 --hot-bytes 10 -o x.npy
try trace g 5
try trace
try trace --model qwen3.8-flash-next 7 -o /dev/stdout | wc -c
