#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared libraries export just what symbols/NAME.txt lists. What is listed there is declared
# in include/. A library also exports what NAME_private.txt lists for the libraries above it, with a
# symbol version of their own. No hook for tests is exported. The static library of libembla defines
# no global name that does not begin with embla_. To see what changed: nm -D --defined-only LIB
#   usage: symbols.sh PROJECT LIBEMBLA.a LIBRARY.so..    (--update PROJECT .. writes the lists)
set -eu
LC_ALL=C
export LC_ALL
update=
if [ "$1" = --update ]; then update=yes; shift; fi
project=$1 archive=$2
shift 2
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
    [ -z "$update" ] || exported "$1" "$2" >"$lists/$3.txt"
    exported "$1" "$2" | diff "$lists/$3.txt" - ||
        fail "${1##*/} exports other names in $2 than symbols/$3.txt lists (> now)"
}
for library in "$@"; do
    name=${library##*/lib} name=${name%%.so*}
    compare "$library" 'EMBLA_[0-9.]+$' "$name"
    compare "$library" 'EMBLA_PRIVATE_[0-9.]+$' "${name}_private"
    for function in $(cat "$lists/$name.txt"); do
        grep -q "\b$function(" "$project"/include/*.h ||
            fail "$function is exported but not declared in include/"
    done
    found=$(strangers "$library")
    [ -z "$found" ] || fail "${library##*/} exports names without a version: $found"
done
cat "$lists"/*.txt | sort | uniq -d >"$work"
[ ! -s "$work" ] || fail "listed twice: $(cat "$work")"

# A hook is declared below a comment that begins "For tests:".
hooks=$(awk '/For tests:/ {hook = 1} hook && /^[a-zA-Z].*\(/ {
    match($0, /embla_[a-z0-9_]*\(/); print substr($0, RSTART, RLENGTH - 1); hook = 0}' "$project"/src/*/*/*.h "$project"/src/cluster/*.h)
echo "$hooks" | grep -q embla_mem_fail || fail "the hooks for tests were not found in src/"
for hook in $hooks; do
    if cat "$lists"/*.txt | grep -qx "$hook"; then fail "$hook is for tests, and exported"; fi
done

found=$(nm -g --defined-only "$archive" | awk 'NF == 3 && $3 !~ /^embla_/ {print $3}')
[ -z "$found" ] || fail "global names without the prefix: $found"
# The libraries need nothing beyond the C library: no OpenMP, no MPI, no engine.
for library in "$@"; do
    needed=$(objdump -p "$library" | awk '$1 == "NEEDED" {print $2}' |
        grep -vE '^(libembla|libembla_text|libembla_lab|libc|libm|libpthread|ld-linux.*)\.so' || true)
    [ -z "$needed" ] || fail "${library##*/} needs more than it should: $needed"
    # Functions that each C library rounds in its own way: base/elementary.h has them.
    rounded=$(nm -D --undefined-only "$library" | awk '{sub(/@.*/, "", $2); print $2}' |
        grep -xE '(a?(sin|cos|tan)h?|atan2|sincos|exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|cbrt|hypot|erfc?|[lt]gamma)[fl]?' || true)
    [ -z "$rounded" ] || fail "${library##*/} uses functions that differ between C libraries: $rounded"
done
