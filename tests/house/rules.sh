#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every code of a message is explained: docs/formats.md has it, and `embla help CODE` prints that.
#   usage: rules.sh PROJECT
set -eu
command -v python3 >/dev/null || { echo "skipped: python3 is not here"; exit 77; }
LC_ALL=C.UTF-8 exec python3 "$1/tests/house/rules.py" "$1"
