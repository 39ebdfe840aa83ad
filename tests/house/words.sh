#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What every file begins with, and what none may hold.
#   usage: words.sh PROJECT
set -eu
cd "$1"
bad=0
say() {
    echo "$1"
    bad=1
}
files=$(find src include cli bench tests examples fuzz .ci packaging -type f \
    \( -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.hpp' -o -name '*.sh' -o -name '*.cmake' -o -name CMakeLists.txt -o -name run -o -name nightly \))
for file in $files CMakeLists.txt; do
    head -n 2 "$file" | grep -q 'SPDX-License-Identifier'': Apache-2.0' || say "$file: no SPDX line"
done
lines() { # PATTERN WHERE.. : the matches, or nothing
    pattern=$1
    shift
    grep -rnE "$pattern" "$@" || true
}
found=$(lines '\b(TODO|FIXME|XXX)\b' src include cli bench examples)
[ -z "$found" ] || say "to be done, in main: $found"
found=$(lines '\b(exit|abort|printf|puts|perror|assert)\(' src)
[ -z "$found" ] || say "the library neither prints nor ends the program: $found"
found=$(lines '\b(malloc|calloc|realloc|aligned_alloc|free)\(' src | grep -v '^src/core/system/' || true)
[ -z "$found" ] || say "memory comes through base/mem only: $found"
exit $bad
