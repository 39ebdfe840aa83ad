#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# embla.hpp reaches every function of the four stable headers, and each part of it compiles alone.
# tests/cpp is compiled as C++17 and as C++20, by g++ here and by clang++ with the sanitizers.
#   usage: hpp.sh PROJECT
set -eu
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
say() {
    echo "$1"
    bad=1
}

# Functions that embla.hpp does not call by their name, each with the reason. There are none.
cat >"$work/left" <<'END'
END
functions() { # FILE..: without comments and preprocessor lines
    cat "$@" | sed -e '/^[ \t]*#/d' | tr '\n' ' ' | sed -e 's|/\*|\n/*|g; s|\*/|*/\n|g' | sed -e '/^\/\*/d'
}
functions include/embla.h include/embla_checkpoint.h include/embla_store.h include/embla_text.h |
    tr ';' '\n' | sed -n 's/.*EMBLA_API[^(]*\b\(embla_[a-z0-9_]*\)(.*/\1/p' | sort -u >"$work/declared"
functions include/embla.hpp include/embla/*.hpp | grep -o '\bembla_[a-z0-9_]*' | sort -u >"$work/used"
[ "$(wc -l <"$work/declared")" -ge 150 ] || say "only $(wc -l <"$work/declared") functions were found in the headers"
sed 's/ .*//' "$work/left" | sort >"$work/names"
missing=$(comm -23 "$work/declared" "$work/used" | comm -23 - "$work/names")
[ -z "$missing" ] || say "embla.hpp does not reach: $missing"
wrong=$(comm -12 "$work/names" "$work/used")
[ -z "$wrong" ] || say "listed in hpp.sh, though embla.hpp reaches it: $wrong"

if command -v c++ >/dev/null; then
    for part in include/embla/*.hpp; do
        echo "#include \"${part#include/}\"" | c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -Wconversion -Wshadow \
            -fsyntax-only -Iinclude -x c++ - || say "$part does not compile alone"
    done
else
    echo "c++ is not here: the parts are not compiled"
fi
exit $bad
