#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A project that adds ours with FetchContent or add_subdirectory gets libembla and nothing else: no lab,
# no program, no tests, nothing installed. It needs no headers of oneDNN, BLAS, LAPACK or Pango.
#   usage: subproject.sh PROJECT CC [LAUNCHER]      EMBLA_CMAKE is the cmake to use
set -eu
project=$1 cc=$2 launcher=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "$1"
    exit 1
}

for way in fetch subdirectory; do
    build=$work/$way
    "$project/tests/house/foreign.sh" "$project" $way "$project" "$build" "$cc" "$launcher"
    found=$(find "$build" -name 'libembla_lab*' -o -name embla -type f -o -name 'test_*' -type f)
    [ -z "$found" ] || fail "built, though nobody asked for it: $found"
    found=$(grep -E '^(DNNL|CBLAS|LAPACKE|PANGOCAIRO|CMOCKA|JANSSON)_' "$build/CMakeCache.txt" || true)
    [ -z "$found" ] || fail "looked for, though it is not needed: $found"
    found=$(ctest --test-dir "$build" -N | sed -n 's/^Total Tests: //p')
    [ "$found" = 0 ] || fail "$found tests were added"
    "${EMBLA_CMAKE:-cmake}" --install "$build" --prefix "$work/prefix" >/dev/null
    [ ! -d "$work/prefix" ] || fail "installed, though nobody asked for it: $(find "$work/prefix" -type f)"
done
