#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs into an empty folder and moves that folder. Then builds and runs a C and a C++ program
# outside the tree against it: by pkg-config and by find_package, shared and static. The examples are
# built as examples/README.md says, and the README's program as C and as C++. The commands of the
# README run on the installed demo.
#   usage: install.sh PROJECT BUILD CC
set -eu
project=$1 build=$2 cc=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
user=$project/tests/house/user

cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/second" # no installed file may depend on its first place
prefix=$work/second
libdir=$(dirname "$(find "$prefix" -name 'libembla.so' | head -n 1)")
expect="row 2: -0.90 0.10; 3 rows cost 48 bytes"
check() { # NAME COMMAND..
    name=$1
    shift
    got=$(LD_LIBRARY_PATH=$libdir "$@")
    [ "$got" = "$expect" ] || { echo "$name printed: $got"; exit 1; }
    echo "$name: right"
}

if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=$libdir/pkgconfig
    export PKG_CONFIG_PATH
    $cc "$user/user.c" $(pkg-config --cflags --libs embla_lab) -o "$work/c-shared"
    check "C, pkg-config, shared" "$work/c-shared"
    if command -v c++ >/dev/null; then
        c++ "$user/user.cpp" $(pkg-config --cflags --libs embla_lab) -o "$work/cpp-shared"
        check "C++, pkg-config, shared" "$work/cpp-shared"
    fi
    (cd "$work" && "$prefix/bin/embla" demo -o demo -q)
    line=$(grep '^cc order.c ' "$project/examples/README.md")
    sed -n 's/.*| \[\([a-z_]*\)\.\(c\|cpp\)\](.*) | *\([a-z]*\).*/\1 \2 \3/p' "$project/examples/README.md" >"$work/examples"
    while read -r name language part; do
        [ -e "$build/examples/$name" ] || continue # it needs an engine, or a C++ compiler
        case $part in text | lab | cluster) library=embla_$part ;; *) library=embla ;; esac
        case $language in cpp) compiler="c++ -std=c++17" ;; *) compiler=$cc ;; esac
        cp "$project/examples/$name.$language" "$work/demo/"
        command=$(echo "$line" | sed "s|^cc order.c|$compiler $name.$language|; s/order/$name/g; s/embla_lab/$library/")
        (cd "$work/demo" && sh -c "$command") || { echo "failed: $command"; exit 1; }
        (cd "$work/demo" && LD_LIBRARY_PATH=$libdir "./$name") >"$work/printed"
        diff -u "$project/examples/$name.out" "$work/printed"
        case $name in engine) (cd "$work/demo" && LD_LIBRARY_PATH=$libdir ./engine village) ;; esac
        rm "$work/demo/$name.$language" "$work/demo/$name"
        echo "example $name: right"
    done <"$work/examples"
    awk '/^```c$/ { found = 1; next } /^```/ { found = 0 } found' "$project/README.md" >"$work/rows.c"
    for compiler in "$cc" c++; do
        command -v "$compiler" >/dev/null || { echo "$compiler is not here: its program is left out"; continue; }
        case $compiler in c++) language="-x c++" ;; *) language=-Wextra ;; esac
        (cd "$work" && $compiler $language -Wall -Werror rows.c -o rows $(pkg-config --cflags --libs embla))
        LD_LIBRARY_PATH=$libdir "$work/rows"
    done
    cp -r "$prefix" "$work/static" # where both are, the linker takes the shared one
    find "$work/static" -name '*.so*' -exec rm {} +
    PKG_CONFIG_PATH=$work/static/${libdir#"$prefix"/}/pkgconfig
    $cc "$user/user.c" $(pkg-config --static --cflags --libs embla_lab) -o "$work/c-static"
    check "C, pkg-config, static" "$work/c-static"
else
    echo "pkg-config is not here: its half is left out"
fi

for way in package pkgconfig; do
    [ $way = package ] || command -v pkg-config >/dev/null || continue
    LD_LIBRARY_PATH=$libdir "$project/tests/house/foreign.sh" "$project" $way "$prefix" "$work/$way" "$cc"
done
for header in "$project"/include/*.h "$project"/include/*.hpp "$project"/include/embla/*.hpp; do
    cmp "$header" "$prefix/include/${header#"$project"/include/}"
done
"$prefix/bin/embla" --version >/dev/null
[ -s "$prefix/share/man/man1/embla.1" ] && [ -s "$prefix/share/man/man1/embla-near.1" ]
if command -v python3 >/dev/null; then [ -s "$prefix/share/man/man3/embla_store.3" ]; fi

# a process that MPI has started finds its module where it was installed
module=$(find "$libdir/embla" -name libembla_mpi_mpich.so 2>/dev/null || true)
if [ -n "$module" ] && command -v mpirun.mpich >/dev/null; then
    (cd "$work" && mpirun.mpich -n 2 "$prefix/bin/embla" train "$project/demo/names.txt" --preset microgpt --batch 2 --micro-batches 2 --steps 2 -q -o ranks)
    echo "two ranks: ${module#"$prefix"/}"
fi

# the demo, and every command of the README on it
[ -d "$work/demo" ] || (cd "$work" && "$prefix/bin/embla" demo -o demo -q)
[ "$("$prefix/bin/embla" demo --folder)" = "$(realpath "$prefix/share/embla/demo")" ]
if [ -e "$prefix/share/embla/play/play.wasm.gz" ]; then # the module was built before
    (cd "$work" && env -u EMBLA_PLAY -u EMBLA_DEMO "$prefix/bin/embla" play -o page.html -q)
    cmp "$work/page.html" "$prefix/share/embla/play.html"
    echo "the page of the demo"
fi
if command -v python3 >/dev/null; then
    python3 "$project/tests/house/readme.py" "$prefix/bin/embla" "$work/demo" "$project/README.md" \
        "$project/docs/tour.md" "$project/docs/concepts.md"
else
    echo "python3 is not here: the commands of the README are left out"
fi
