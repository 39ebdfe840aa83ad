#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shows every #include in src/ that goes against the order of the libraries and rooms, and every
# outside library included from a second place. Exits 1 if there is one, 2 if src/ holds a room
# that is not listed here.
#   usage: layers.sh PROJECT
set -eu
cd "$1/src"

# The rooms a room may include.
allowed() {
    core="checkpoint formats files base system"
    case "$1" in
    core/system)     echo "system" ;;
    core/base)       echo "base system" ;;
    core/files)      echo "files base system" ;;
    core/formats)    echo "formats files base system" ;;
    core/checkpoint) echo "$core" ;;
    core/lookup)     echo "lookup $core" ;;
    core/table)      echo "table lookup $core" ;;
    core/ngram)      echo "ngram $core" ;;
    core/store)      echo "store lookup $core" ;;
    text/unicode)    echo "unicode base" ;;
    text/tokenizer)  echo "tokenizer unicode $core" ;;
    text/encoder)    echo "encoder tokenizer unicode table $core" ;;
    lab/engine)      echo "engine table lookup $core" ;;
    lab/near)        echo "near engine table $core" ;;
    lab/see)         echo "see near engine table unicode $core" ;;
    lab/map)         echo "map near engine table $core" ;;
    lab/search)      echo "search see near engine encoder table $core" ;;
    lab/reshape)     echo "reshape $core" ;;
    lab/learn)       echo "learn engine table lookup $core" ;;
    lab/corpus)      echo "corpus tokenizer unicode $core" ;;
    lab/vocabulary)  echo "vocabulary corpus tokenizer unicode $core" ;;
    lab/wordvec)     echo "wordvec corpus encoder unicode $core" ;;
    lab/model)       echo "model learn engine ngram table unicode $core" ;;
    lab/train)       echo "train model learn corpus $core" ;;
    lab/play)        echo "play $core" ;;
    cluster)         echo "cluster train corpus model learn engine table lookup $core" ;;
    *)               echo "unknown room: $1" >&2; return 2 ;;
    esac
}

# The public headers a room may include: those that declare what it does, and what it uses.
public() {
    case "$1" in
    core/base | core/files)                          echo "embla.h" ;;
    core/formats | core/checkpoint | core/table)     echo "embla.h embla_checkpoint.h" ;;
    core/*)                                          echo "embla.h embla_checkpoint.h embla_store.h" ;;
    text/*)                                          echo "embla.h embla_checkpoint.h embla_text.h" ;;
    lab/engine | lab/near | lab/map | lab/reshape)   echo "embla.h embla_checkpoint.h embla_lab.h" ;;
    lab/see)                                         echo "embla.h embla_checkpoint.h embla_store.h embla_lab.h" ;;
    lab/search)                                      echo "embla.h embla_text.h embla_lab.h embla_search.h" ;;
    lab/learn)                                       echo "embla.h embla_learn.h" ;;
    lab/corpus | lab/vocabulary)                     echo "embla.h embla_text.h embla_train.h" ;;
    lab/wordvec)                                     echo "embla.h embla_text.h embla_wordvec.h" ;;
    lab/model | lab/train)
        echo "embla.h embla_checkpoint.h embla_store.h embla_text.h embla_learn.h embla_train.h" ;;
    lab/play)                                        echo "embla.h embla_checkpoint.h embla_lab.h embla_train.h" ;;
    cluster)
        echo "embla.h embla_checkpoint.h embla_store.h embla_text.h embla_learn.h embla_train.h embla_wordvec.h embla_cluster.h" ;;
    esac
}

# The one file an outside library is included from.
home_of() {
    case "$1" in
    dnnl.h | oneapi/dnnl/dnnl.h) echo "lab/engine/onednn.c" ;;
    lapacke.h)           echo "lab/engine/lapacke.c" ;;
    xxhash.h)            echo "core/base/checksum.c" ;;
    cairo*.h | pango/*)  echo "none: cli/draw/paint.c has it" ;;
    linux/io_uring.h)    echo "core/system/linux_ring.c" ;;
    mpi.h)               echo "cluster/comm_mpi.c" ;;
    esac
}

bad=0
say() {
    echo "$1"
    bad=1
}

for file in */*/*.[ch] cluster/*.[ch]; do
    [ -e "$file" ] || continue
    room=${file%/*}
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
        # The struct of a table is for table/ alone: others use embla.h and table/access.h.
        if [ "$header" = table/table.h ] && [ "$room" != core/table ]; then
            say "src/$file includes \"$header\": include \"table/access.h\""
        fi
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
shared="base/base64.h base/hash.h base/json_text.h base/shown.h base/utf8.h base/x86.h system/system.h system/system_threads.h"
for file in $shared; do
    file=core/$file
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
# that the library itself uses. bench/bench_scatter.c measures what a training does, bench/bench_cluster.c
# what a team of ranks does. The loops of
# limits run on the library's threads (base/parallel.h). A benchmark is linked with the static
# library, which shows its private symbols.
cd ..
if grep -n '"table/table\.h"' tests/*.[ch] tests/*/*.[ch] tests/*/*/*.[ch] fuzz/*.[ch] src/core/table/row_mean.h src/core/table/access.h; then
    say "a test, or a header of table/ that others include, has the struct of a table"
fi
for file in cli/*.[ch] cli/*/*.[ch] bench/*.[ch] examples/*.c; do
    [ -e "$file" ] || continue
    for header in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file"); do
        [ "$file $header" != "bench/products.c engine/engine.h" ] || continue
        [ "$file $header" != "bench/disk_limits.c files/io_ring.h" ] || continue
        [ "$file $header" != "bench/bench_scatter.c learn/scatter_sum.h" ] || continue
        case "$file $header" in
        bench/*" base/parallel.h" | "bench/bench_cluster.c cluster/"*) continue ;;
        cli/host/*" system/"*) continue ;; # the files of one system share its header
        esac
        [ -e "src/$header" ] || [ -e "src/core/$header" ] || [ -e "src/text/$header" ] || [ -e "src/lab/$header" ] || continue
        case " $shared " in
        *" $header "*) ;;
        *) say "$file includes \"$header\": only include/ and $shared are for it" ;;
        esac
    done
done
# Loops are shared by embla_share alone (docs/decisions/033).
if grep -n '#[[:space:]]*pragma[[:space:]]*omp\|<omp\.h>' -r src cli bench python/src; then
    say "a loop of OpenMP: share it with embla_share of base/parallel.h"
fi
exit $bad
