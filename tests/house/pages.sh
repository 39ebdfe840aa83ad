#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every command that a learner meets in one copy of the demo, twice and after each other: those of
# README.md and docs/ (tour, concepts, tutorial, look, operate, index), whose output is compared, and those that `embla
# demo` shows, which must succeed. The pictures of concepts.md that need no matrix library are those
# that its commands draw.
#   usage: pages.sh PROJECT EMBLA
set -eu
command -v python3 >/dev/null || { echo "skipped: python3 is not here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
EMBLA_DEMO=$1/demo
export EMBLA_DEMO
PATH=$(dirname "$2"):$PATH
for again in 1 2; do
    embla demo -o "$work/demo" -q || { echo "the copy of round $again fails"; exit 1; }
    LC_ALL=C.UTF-8 python3 "$1/tests/house/readme.py" "$2" "$work/demo" "$1/README.md" \
        "$1/docs/tour.md" "$1/docs/concepts.md" "$1/docs/tutorial.md" "$1/docs/look.md" "$1/docs/operate.md" "$1/docs/index.md" || { echo "in round $again"; exit 1; }
    (cd "$work/demo" && embla demo </dev/null) >"$work/walk"
    sed -n 's/^   \$ //p' "$work/walk" >"$work/commands"
    [ "$(wc -l <"$work/commands")" -gt 8 ] || { echo "the demo shows too few commands"; exit 1; }
    while read -r command; do
        code=0
        (cd "$work/demo" && bash -c "$command") >"$work/said" 2>&1 </dev/null || code=$?
        case $code,$command in 0,* | 3,"embla diff "*) continue ;; esac # 3 means that tables differ
        echo "in round $again: $command"
        cat "$work/said"
        exit 1
    done <"$work/commands"
done
for picture in embed waves; do
    cmp "$work/demo/ideas/$picture.svg" "$1/docs/$picture.svg"
done
