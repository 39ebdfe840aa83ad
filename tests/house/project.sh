#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every file that has the address of the project has that of packaging/project.env, and every recipe can
# be filled.
#   usage: project.sh PROJECT
set -eu
command -v bash >/dev/null || { echo "skipped: bash is not here"; exit 77; }
exec "$1/packaging/project"
