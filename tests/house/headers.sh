#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone; the public ones as C99, C11 and C++ too, and the macros in
# them agree with each other. No public function has more than six arguments: more of them are the
# fields of a struct.
#   usage: headers.sh PROJECT CC
set -eu
cd "$1"
cc=$2
flags="-Wall -Wextra -Werror -fsyntax-only -Iinclude -Isrc -Isrc/core -I."
for header in include/*.h; do
    for standard in c99 c11; do
        $cc -std=$standard -pedantic $flags -x c "$header"
    done
    if command -v c++ >/dev/null; then c++ -std=c++11 -pedantic $flags -x c++ "$header"; fi
done
for header in src/*/*/*.h src/cluster/*.h cli/*/*.h bench/*.h tests/*.h; do
    [ -e "$header" ] || continue
    if grep -q "No include guard: it is included" "$header"; then continue; fi # with macros that it needs
    if [ "$header" = src/core/system/win.h ]; then continue; fi # for the compilers of Windows
    case $header in # a library includes no header of a library above it
    src/text/*) above=-Isrc/text ;;
    src/lab/* | src/cluster/* | tests/*) above="-Isrc/text -Isrc/lab" ;;
    *) above= ;;
    esac
    # an inline function that a header only offers is not an unused one
    $cc -std=c11 -D_GNU_SOURCE $flags $above -Wno-unused-function -Icli -x c "$header"
done

long=$(for header in include/*.h; do
    # without comments and preprocessor lines; a statement of C on each line
    sed -e '/^[ \t]*#/d' "$header" | tr '\n' ' ' | sed -e 's|/\*|\n/*|g; s|\*/|*/\n|g' |
        sed -e '/^\/\*/d' | tr '\n' ' ' | tr ';' '\n' | awk -v header="$header" '
        match($0, /EMBLA_API[^(]*\(/) {
            count = split(substr($0, RSTART, RLENGTH - 1), word, /[ *]+/)
            rest = substr($0, RSTART + RLENGTH)
            arguments = 1
            for (depth = 0; length(rest) && depth >= 0; rest = substr(rest, 2)) {
                letter = substr(rest, 1, 1)
                depth += (letter == "(") - (letter == ")")
                arguments += letter == "," && depth == 0
            }
            if (arguments > 6) print header ": " word[count] " has " arguments " arguments; at most 6"
            functions++
        }
        END { if (!functions) print header ": no functions were found" }'
done)
[ -z "$long" ] || { echo "$long"; exit 1; }
