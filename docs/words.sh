#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Draws the picture of README.md.
#   usage: docs/words.sh EMBLA
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../demo"
"$1" map words.vec --layout neighbours --color community --theme light --size 1400x900 \
    --words king,queen,prince,man,woman,cat,kitten,dog,horse,tuesday,friday,bread,honey,red,blue,mother,sister,three,winter,spring,run,sprint,justice,xylophone,k,K \
    -o "$here/words.svg" --force -q
