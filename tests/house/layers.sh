#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shows every #include in src/ that goes against the order of the rooms, and
# every outside library included from a second place. Exits 1 if there is one,
# 2 if src/ holds a room that is not listed here.
#   usage: layers.sh PROJECT
set -eu
cd "$1/src"

# The rooms a room may include.
allowed() {
    case "$1" in
    base)    echo "base" ;;
    files)   echo "files base" ;;
    store)   echo "store files base" ;;
    table)   echo "table store files base" ;;
    text)    echo "text table files base" ;;
    cluster) echo "cluster table store files base" ;;
    learn)   echo "learn cluster table files base" ;;
    see)     echo "see table files base" ;;
    reshape) echo "reshape table files base" ;;
    *)       echo "unknown room: $1" >&2; return 2 ;;
    esac
}

# The one file an outside library is included from.
home_of() {
    case "$1" in
    cblas.h | lapacke.h | dnnl.h | oneapi/dnnl/dnnl.h) echo "base/linalg.c" ;;
    xxhash.h)            echo "base/checksum.c" ;;
    png.h)               echo "none: cli/png.c has it" ;;
    liburing.h)          echo "store/direct.c" ;;
    utf8proc.h)          echo "text/normalize.c" ;;
    pcre2.h)             echo "text/split.c" ;;
    mpi.h)               echo "cluster/comm_mpi.c" ;;
    esac
}

bad=0
say() {
    echo "$1"
    bad=1
}

for file in */*.c */*.h; do
    [ -e "$file" ] || continue
    room=${file%%/*}
    may=$(allowed "$room")
    for header in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file"); do
        case "$header" in
        embla.h | embla_lab.h | embla_learn.h | embla_store.h | embla_train.h) continue ;;
        esac
        target=${header%%/*}
        case " $may " in
        *" $target "*) ;;
        *) say "src/$file includes \"$header\": $room may use only $may" ;;
        esac
    done
    for header in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*<\([^>]*\)>.*/\1/p' "$file"); do
        home=$(home_of "$header")
        [ -z "$home" ] || [ "$home" = "$file" ] || say "src/$file includes <$header>: that is for src/$home"
    done
done

# Users of the library see its public headers only.
cd ..
for file in cli/*.[ch] bench/*.[ch] examples/*.c; do
    [ -e "$file" ] || continue
    for header in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file"); do
        case "$header" in
        base/* | files/* | store/* | table/* | text/* | cluster/* | learn/* | see/* | reshape/*)
            say "$file includes \"$header\": only include/ is for it" ;;
        esac
    done
done
exit $bad
