#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A project that adds ours with FetchContent gets libembla and nothing else: no lab, no program,
# no tests, nothing installed. It needs no headers of oneDNN, BLAS, LAPACK or Pango.
#   usage: subproject.sh PROJECT CC [LAUNCHER]
set -eu
project=$1 cc=$2 launcher=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build=$work/build
fail() {
    echo "$1"
    exit 1
}

cmake -S "$project/tests/house/subproject" -B "$build" -DEMBLA="$project" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_C_COMPILER_LAUNCHER="$launcher" -DCMAKE_BUILD_TYPE=Debug >"$work/log" || fail "$(cat "$work/log")"
cmake --build "$build" -j 2 >"$work/log" 2>&1 || fail "$(cat "$work/log")"
got=$("$build/engine")
[ "$got" = "row 2: 5 6" ] || fail "engine printed: $got"

found=$(find "$build" -name 'libembla_lab*' -o -name embla -type f -o -name 'test_*' -type f)
[ -z "$found" ] || fail "built, though nobody asked for it: $found"
found=$(grep -E '^(DNNL|CBLAS|LAPACKE|PANGOCAIRO|CMOCKA|JANSSON)_' "$build/CMakeCache.txt" || true)
[ -z "$found" ] || fail "looked for, though it is not needed: $found"
found=$(ctest --test-dir "$build" -N | sed -n 's/^Total Tests: //p')
[ "$found" = 0 ] || fail "$found tests were added"
cmake --install "$build" --prefix "$work/prefix" >/dev/null
[ ! -d "$work/prefix" ] || fail "installed, though nobody asked for it: $(find "$work/prefix" -type f)"
