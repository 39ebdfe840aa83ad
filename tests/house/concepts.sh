#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every command of the two pages for learners, docs/concepts.md and docs/tutorial.md, in one copy
# of the demo, twice and after each other, and compares the output. The pictures of concepts.md that
# need no matrix library are those that its commands draw.
#   usage: concepts.sh PROJECT EMBLA
set -eu
command -v python3 >/dev/null || { echo "skipped: python3 is not here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
EMBLA_DEMO=$1/demo
export EMBLA_DEMO
"$2" demo -o "$work/demo" -q
for again in 1 2; do
    LC_ALL=C.UTF-8 python3 "$1/tests/house/readme.py" "$2" "$work/demo" "$1/docs/concepts.md" \
        "$1/docs/tutorial.md" || { echo "in round $again"; exit 1; }
done
for picture in embed waves; do
    cmp "$work/demo/ideas/$picture.svg" "$1/docs/$picture.svg"
done
