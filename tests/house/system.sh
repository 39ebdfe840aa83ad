#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Only src/core/system and, for the program, cli/host know which operating system there is. Elsewhere
# in src/, cli/ and python/src no line asks for a system, and no header is included but those of C,
# of Python, of the CPU, and of outside libraries in their one file (layers.sh). strings.h has
# comparisons without regard to capitals, everywhere. comm_mpi.c is a library of its own, which links
# nothing of Embla.
#   usage: system.sh PROJECT
set -eu
cd "$1"
bad=0
standard="assert complex ctype errno fenv float inttypes limits locale math setjmp stdalign stdarg stdatomic
    stdbool stddef stdint stdio stdlib stdnoreturn string tgmath time uchar wchar wctype
    strings immintrin emmintrin arm_neon cpuid xxhash dnnl oneapi/dnnl/dnnl lapacke pango/pangocairo Python"
for file in $(find src cli python/src -name '*.[ch]' ! -path 'src/core/system/*' ! -path 'cli/host/*' ! -path 'src/cluster/comm_mpi.c' | sort); do
    for header in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*<\([^>]*\)\.h>.*/\1/p' "$file"); do
        known=
        for name in $standard; do [ "$name" != "$header" ] || known=yes; done
        [ -n "$known" ] || { echo "$file includes <$header.h>: only src/core/system and cli/host may"; bad=1; }
    done
done
systems='__linux__|__linux|__gnu_linux__|__APPLE__|__MACH__|_WIN32|_WIN64|__MINGW32__|__CYGWIN__|_MSC_VER|__wasi__|__wasm__|__EMSCRIPTEN__|__unix__|__GLIBC__|__ANDROID__|__FreeBSD__|__OpenBSD__|__NetBSD__'
found=$(grep -rnE "^[[:space:]]*#[[:space:]]*(el)?if.*\b($systems)\b" --include='*.[ch]' src cli python/src | grep -v '^src/core/system/\|^cli/host/' || true)
[ -z "$found" ] || { echo "only src/core/system may ask for a system: $found"; bad=1; }
exit $bad
