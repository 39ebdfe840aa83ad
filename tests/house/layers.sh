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
    formats) echo "formats files base" ;;
    lookup)  echo "lookup formats files base" ;;
    table)   echo "table lookup formats files base" ;;
    ngram)   echo "ngram formats files base" ;;
    store)   echo "store lookup formats files base" ;;
    text)    echo "text table lookup formats files base" ;;
    engine)  echo "engine base" ;;
    see)     echo "see engine table formats files base" ;;
    search)  echo "search see text engine table formats files base" ;;
    reshape) echo "reshape formats files base" ;;
    learn)   echo "learn engine table formats files base" ;;
    model)   echo "model learn ngram engine table formats files base" ;;
    train)   echo "train model learn text formats files base" ;;
    wordvec) echo "wordvec text formats files base" ;;
    cluster) echo "cluster train wordvec model learn engine table lookup formats files base" ;;
    *)       echo "unknown room: $1" >&2; return 2 ;;
    esac
}

# The public headers a room may include: those that declare what it does, and what it uses.
public() {
    case "$1" in
    base | files)           echo "embla.h" ;;
    formats | table)        echo "embla.h embla_checkpoint.h" ;;
    lookup | ngram | store) echo "embla.h embla_checkpoint.h embla_store.h" ;;
    text)                   echo "embla.h embla_checkpoint.h embla_text.h" ;;
    engine | see | reshape) echo "embla.h embla_checkpoint.h embla_lab.h" ;;
    learn)                  echo "embla.h embla_learn.h" ;;
    search)                 echo "embla.h embla_text.h embla_lab.h embla_search.h" ;;
    wordvec)                echo "embla.h embla_text.h embla_wordvec.h" ;;
    model | train)          echo "embla.h embla_checkpoint.h embla_store.h embla_text.h embla_learn.h embla_train.h" ;;
    cluster)                echo "embla.h embla_checkpoint.h embla_store.h embla_text.h embla_learn.h embla_train.h embla_wordvec.h embla_cluster.h" ;;
    esac
}

# The one file an outside library is included from.
home_of() {
    case "$1" in
    dnnl.h | oneapi/dnnl/dnnl.h) echo "engine/onednn.c" ;;
    cblas.h)             echo "engine/cblas.c" ;;
    lapacke.h)           echo "engine/lapacke.c" ;;
    xxhash.h)            echo "base/checksum.c" ;;
    cairo*.h | pango/*)  echo "none: cli/draw/paint.c has it" ;;
    linux/io_uring.h)    echo "files/ring.c" ;;
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
        embla*.h)
            case " $(public "$room") " in
            *" $header "*) ;;
            *) say "src/$file includes \"$header\": $room may use only $(public "$room")" ;;
            esac
            continue
            ;;
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

# Headers that users of the library share with it (docs/decisions/018): functions that are inlined,
# without symbols of the library. They include the C library and each other, nothing else.
shared="base/hash.h base/json_text.h base/utf8.h"
for file in $shared; do
    for header in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file"); do
        case " $shared " in
        *" $header "*) ;;
        *) say "src/$file includes \"$header\": it may include only the C library and $shared" ;;
        esac
    done
    if grep -n '^extern\|EMBLA_PRIVATE\|EMBLA_API' "$file"; then say "src/$file declares a symbol of the library"; fi
done

# Users of the library include its public headers, and those above. The exceptions are
# bench/products.c and bench/disk_limits.c: a limit must be measured with the engine, or the ring,
# that the library itself uses, and a benchmark is linked with the static library, which shows its
# private symbols.
cd ..
for file in cli/*.[ch] cli/*/*.[ch] bench/*.[ch] examples/*.c; do
    [ -e "$file" ] || continue
    for header in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file"); do
        [ "$file $header" != "bench/products.c engine/engine.h" ] || continue
        [ "$file $header" != "bench/disk_limits.c files/ring.h" ] || continue
        [ -e "src/$header" ] || continue
        case " $shared " in
        *" $header "*) ;;
        *) say "$file includes \"$header\": only include/ and $shared are for it" ;;
        esac
    done
done
exit $bad
