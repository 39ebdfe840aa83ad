#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Who configures Embla for a system that it does not run on reads one sentence, before a compiler or a
# library is looked for.
#   usage: unsupported.sh PROJECT CMAKE
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if "$2" -S "$1" -B "$work/build" -DCMAKE_SYSTEM_NAME=Haiku >"$work/said" 2>&1; then
    echo "a build for Haiku can be configured"
    exit 1
fi
want='Embla does not run on Haiku: it needs Linux, macOS, Windows or WASI.'
tr -s '\n ' '  ' <"$work/said" | grep -qF "$want" || { cat "$work/said"; echo "expected: $want"; exit 1; }
if grep -E '^--.*(compiler|Found|Looking)' "$work/said"; then
    echo "something was looked for before that sentence"
    exit 1
fi
