# SPDX-License-Identifier: Apache-2.0
# What it costs to read the rows of a text from disk. Times, and the reader, depend on the machine.
. "$SOURCE/tests/cli/models.sh"
make_model giant g
steady() {
    sed -E -e 's/p50 [0-9.]+ ms, p99 [0-9.]+ ms/p50 T ms, p99 T ms/' -e 's/blocked for [0-9.]+/blocked for T/' \
        -e 's/(io_uring|pread|buffered), up to [0-9]+ reads/READER, up to N reads/' \
        -e 's/"reader":"[a-z_]+","depth":[0-9]+/"reader":R,"depth":N/' -e 's/_ns":[0-9]+/_ns":T/g' \
        -e 's/grew by [0-9,]+/grew by N/' -e 's/"page_cache_growth":-?[0-9]+/"page_cache_growth":N/'
}
try rows g 1 2 3 --stats | steady
try rows g --ids 5,6 --stats --json | steady
try rows --model qwen3.8-flash-next 1 --stats
