#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared libraries export just what symbols/NAME.txt lists. What is listed there is declared
# in include/. libembla also exports what embla_private.txt lists, with the symbol version of
# libembla_lab's own functions. No hook for tests is exported. The static library defines no
# global name that does not begin with embla_. To see what changed: nm -D --defined-only LIB
#   usage: symbols.sh PROJECT LIBEMBLA.so LIBEMBLA.a [LIBEMBLA_LAB.so]
set -eu
LC_ALL=C
export LC_ALL
project=$1 embla=$2 archive=$3 lab=${4:-}
lists=$project/tests/house/symbols
work=$(mktemp)
trap 'rm -f "$work"' EXIT
fail() {
    echo "$1"
    exit 1
}
exported() { # LIBRARY NODE: functions with that symbol version
    nm -D --defined-only "$1" | awk -v node="@@$2" 'match($3, node) {print substr($3, 1, RSTART - 1)}' | sort
}
strangers() { # LIBRARY: exported symbols that are in no node of ours
    nm -D --defined-only "$1" | awk '$2 != "A" && $3 !~ /^embla_[a-z0-9_]*@@EMBLA_/ {print $3}'
}
compare() { # LIBRARY NODE LIST
    exported "$1" "$2" | diff "$lists/$3.txt" - ||
        fail "${1##*/} exports other names in $2 than symbols/$3.txt lists (> now)"
}
compare "$embla" 'EMBLA_[0-9.]+$' embla
compare "$embla" 'EMBLA_PRIVATE_[0-9.]+$' embla_private
[ -z "$lab" ] || compare "$lab" 'EMBLA_[0-9.]+$' embla_lab
for library in "$embla" $lab; do
    found=$(strangers "$library")
    [ -z "$found" ] || fail "${library##*/} exports names without a version: $found"
done
cat "$lists"/*.txt | sort | uniq -d >"$work"
[ ! -s "$work" ] || fail "listed twice: $(cat "$work")"
for name in $(cat "$lists/embla.txt" "$lists/embla_lab.txt"); do
    grep -q "\b$name(" "$project"/include/*.h || fail "$name is exported but not declared in include/"
done

# A hook is declared below a comment that begins "For tests:".
hooks=$(awk '/For tests:/ {hook = 1} hook && /^[a-zA-Z].*\(/ {
    match($0, /embla_[a-z0-9_]*\(/); print substr($0, RSTART, RLENGTH - 1); hook = 0}' "$project"/src/*/*.h)
echo "$hooks" | grep -q embla_mem_fail || fail "the hooks for tests were not found in src/"
for hook in $hooks; do
    if cat "$lists"/*.txt | grep -qx "$hook"; then fail "$hook is for tests, and exported"; fi
done

found=$(nm -g --defined-only "$archive" | awk 'NF == 3 && $3 !~ /^embla_/ {print $3}')
[ -z "$found" ] || fail "global names without the prefix: $found"
# The libraries need nothing beyond libc, libm and OpenMP: no MPI, no engine.
for library in "$embla" $lab; do
    needed=$(objdump -p "$library" | awk '$1 == "NEEDED" {print $2}' |
        grep -vE '^(libembla|libc|libm|libgomp|libomp|libpthread|ld-linux.*)\.so' || true)
    [ -z "$needed" ] || fail "${library##*/} needs more than it should: $needed"
done
