#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every public function is used by the program, the Python module or an example, or unused.txt has
# the reason why it is not.
#   usage: unused.sh PROJECT
set -eu
command -v python3 >/dev/null || { echo "skipped: python3 is not here"; exit 77; }
LC_ALL=C.UTF-8 exec python3 "$1/tests/house/unused.py" "$1"
