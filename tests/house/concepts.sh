#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every command of docs/concepts.md in a copy of the demo and compares its output.
#   usage: concepts.sh PROJECT EMBLA
set -eu
command -v python3 >/dev/null || { echo "skipped: python3 is not here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
EMBLA_DEMO=$1/demo
export EMBLA_DEMO
"$2" demo -o "$work/demo" -q
LC_ALL=C.UTF-8 python3 "$1/tests/house/readme.py" "$2" "$work/demo" "$1/docs/concepts.md"
