#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every C block of README.md and docs/ compiles as it is, without a warning.
#   usage: snippets.sh SOURCE CC
set -u
source=$1 cc=$2 bad=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$source" || exit 2
awk -v folder="$folder" '
    /^```c$/ { n++; name = sprintf("%s/%03d.c", folder, n); print "#line " FNR + 1 " \"" FILENAME "\"" >name; next }
    /^```/ { name = "" }
    name { print >name }
' README.md docs/*.md src/*.md
for file in "$folder"/*.c; do
    "$cc" -std=c11 -Wall -Wextra -Werror -fsyntax-only -I include "$file" || bad=1
done
echo "$(ls "$folder" | wc -l) blocks"
exit $bad
