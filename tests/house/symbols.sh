#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared libraries export just what symbols/NAME.txt lists, and what is listed there is
# declared in include/; libembla also what embla_private.txt lists, for libembla_lab alone.
# The static library defines no global name that does not begin with embla_. To see what
# changed: nm -D --defined-only LIB
#   usage: symbols.sh PROJECT LIBEMBLA.so LIBEMBLA_LAB.so LIBEMBLA.a
set -eu
LC_ALL=C
export LC_ALL
lists=$1/tests/house/symbols
work=$(mktemp)
trap 'rm -f "$work"' EXIT
exported() { nm -D --defined-only "$1" | awk '{print $3}' | sort; }
sort "$lists/embla.txt" "$lists/embla_private.txt" > "$work"
exported "$2" | diff "$work" - || { echo "libembla exports other names (> now)"; exit 1; }
exported "$3" | diff "$lists/embla_lab.txt" - || { echo "libembla_lab exports other names (> now)"; exit 1; }
for name in $(cat "$lists/embla.txt" "$lists/embla_lab.txt"); do
    grep -q "\b$name(" "$1"/include/*.h ||
        { echo "$name is exported but not declared in include/"; exit 1; }
done
strangers=$(nm -g --defined-only "$4" | awk 'NF == 3 && $3 !~ /^embla_/ {print $3}')
[ -z "$strangers" ] || { echo "global names without the prefix: $strangers"; exit 1; }
# The core library needs nothing beyond libc, libm and OpenMP.
needed=$(objdump -p "$2" | awk '$1 == "NEEDED" {print $2}' | grep -vE '^(libc|libm|libgomp|libomp|libpthread|ld-linux.*)\.so' || true)
[ -z "$needed" ] || { echo "libembla needs more than it should: $needed"; exit 1; }
