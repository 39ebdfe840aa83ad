#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: run.sh PROGRAM EXPECTED
# Runs an example in the folder of the demo and compares its output with the file EXPECTED. If they differ, prints the
# difference (- expected, + printed) and exits with 1. To accept the new output:
# cd demo && PROGRAM > EXPECTED.
set -u
if [ $# -ne 2 ]; then
    echo "usage: run.sh PROGRAM EXPECTED" >&2
    exit 2
fi
printed=$(mktemp) || exit 1
trap 'rm -f "$printed"' EXIT
"$1" > "$printed"
code=$?
if [ $code -ne 0 ]; then
    echo "$1 ended with exit code $code" >&2
    exit 1
fi
diff -u "$2" "$printed"
