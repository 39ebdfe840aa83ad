#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The one-file build: embla_rows.c has every file of src/core but those that packaging/amalgamate
# names with a reason. It compiles without a warning and without CMake, needs nothing but libc, gives
# the rows of the library, and passes the library's own tests of rows, stores and n-grams. The small
# cut of it has at most 9,000 lines, and serves rows from disk.
#   usage: one_file.sh PROJECT CC CMOCKA_INCLUDE CMOCKA_LIBRARY
set -eu
project=$1 cc=$2 include=$3 cmocka=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "$1"
    exit 1
}

"$project/packaging/amalgamate" "$work" >"$work/log" || fail "$(cat "$work/log")"
sed -n '/^LEFT_OUT = {/,/^}/s/^    "\(.*\)": ".*",$/\1/p' "$project/packaging/amalgamate" >"$work/left"
[ -s "$work/left" ] || fail "packaging/amalgamate has no list of files that it leaves out"
(cd "$project/src/core" && ls */*.c) | grep -vF -f "$work/left" >"$work/there"
sed -n 's|^/\* ==== \(.*\) ==== \*/$|\1|p' "$work/embla_rows.c" | LC_ALL=C sort >"$work/taken"
LC_ALL=C sort -o "$work/there" "$work/there"
diff "$work/there" "$work/taken" || fail "embla_rows.c does not have the files of src/core (> has)"
size=$(wc -c <"$work/embla_rows.c")
[ "$size" -lt 1700000 ] || fail "embla_rows.c has $size bytes; the limit is 1700000"
"$cc" -std=c11 -O2 -Wall -Wextra -Werror -c "$work/embla_rows.c" -o "$work/rows.o" 2>"$work/log" ||
    fail "$(head -40 "$work/log")"

# engines that vendor the two files; this one as a user would compile it, without options
cp "$project/examples/engine.c" "$work/example.c"
(cd "$work" && "$cc" example.c embla_rows.c -lpthread -o example)
"$work/example" >"$work/out" 2>"$work/log" || fail "$(cat "$work/log")"
cmp "$work/out" "$project/examples/engine.out"
sed 's/<embla_store.h>/"embla_rows.h"/' "$project/examples/giant.c" >"$work/engine.c"
"$cc" -O2 "$work/engine.c" "$work/rows.o" -lpthread -o "$work/engine"
found=$(ldd "$work/engine" | grep -vE 'linux-vdso|lib(c|pthread)\.so|ld-linux' || true)
[ -z "$found" ] || fail "linked, though it is not needed: $found"
"$work/engine" ram >"$work/out"
cmp "$work/out" "$project/examples/giant.out"

# tests of the library, with the one file in its place
for test in rows store ngram fold; do
    "$cc" -std=c11 -D_GNU_SOURCE -O1 -w -I"$project/include" -I"$project/src/core" -I"$project/tests" -I"$include" \
        "$project"/tests/core/*/test_$test.c "$work/rows.o" "$cmocka" -lpthread -lm -o "$work/test_$test"
    "$work/test_$test" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
    echo "test_$test: $(grep -c ' OK ' "$work/log") passed"
done

# the small cut: one dtype, from disk
"$project/packaging/amalgamate" --small f8_e4m3 "$work" >"$work/log" || fail "$(cat "$work/log")"
lines=$(cat "$work/embla_small.c" "$work/embla_small.h" | wc -l)
[ "$lines" -le 9000 ] || fail "the small cut has $lines lines; the limit is 9000"
"$cc" -std=c11 -O2 -Wall -Wextra -Werror -I"$work" "$project/tests/house/small_engine.c" "$work/embla_small.c" \
    -lpthread -o "$work/small" 2>"$work/log" || fail "$(head -40 "$work/log")"
found=$(ldd "$work/small" | grep -vE 'linux-vdso|lib(c|pthread)\.so|ld-linux' || true)
[ -z "$found" ] || fail "the small cut links, though it is not needed: $found"
"$work/small" "$work/table" || fail "the small cut does not give the rows of the file"
echo "the small cut: $lines lines"
