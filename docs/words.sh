#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Draws the picture of README.md.
#   usage: docs/words.sh EMBLA
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec "$1" map "$here/../demo/words.vec" -o "$here/words.svg" --force -q
