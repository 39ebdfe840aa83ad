#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every C block of README.md and docs/ compiles as it is, without a warning; so does every C++ block.
#   usage: snippets.sh SOURCE CC
set -u
source=$1 cc=$2 bad=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$source" || exit 2
awk -v folder="$folder" '
    /^```(c|cpp)$/ { n++; name = sprintf("%s/%03d.%s", folder, n, substr($0, 4)); print "#line " FNR + 1 " \"" FILENAME "\"" >name; next }
    /^```/ { name = "" }
    name { print >name }
' README.md docs/*.md src/*.md
for file in "$folder"/*.c; do
    "$cc" -std=c11 -Wall -Wextra -Werror -fsyntax-only -I include "$file" || bad=1
done
for file in "$folder"/*.cpp; do
    command -v c++ >/dev/null || { echo "c++ is not here: the blocks of C++ are left out"; break; }
    c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I include "$file" || bad=1
done
echo "$(ls "$folder" | wc -l) blocks"
exit $bad
