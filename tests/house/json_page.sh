#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The keys and types of docs/json.md are those that the verbs print.
#   usage: json_page.sh PROJECT EMBLA
set -eu
command -v python3 >/dev/null || { echo "skipped: python3 is not here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
EMBLA_DEMO=$1/demo
export EMBLA_DEMO
"$2" demo -o "$work/demo" -q
python3 "$1/tests/house/json_page.py" "$2" "$work/demo" "$1/docs/json.md"
