#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the programs of tests/house/user, which get Embla in one of four ways.
#   usage: foreign.sh PROJECT WAY WHERE BUILD CC [LAUNCHER]
# WAY and WHERE: package or pkgconfig and the prefix of an installed Embla; fetch or subdirectory and the
# source. BUILD is a folder that does not exist. EMBLA_CMAKE is the cmake to use.
set -eu
project=$1 way=$2 where=$3 build=$4 cc=$5 launcher=${6:-}
cmake=${EMBLA_CMAKE:-cmake}
fail() {
    echo "$way: $1"
    exit 1
}

export CCACHE_BASEDIR="${build%/*}" CCACHE_NOHASHDIR=1 # what an archive has is compiled once
case $way in
package) set -- -DCMAKE_PREFIX_PATH="$where" ;;
pkgconfig)
    PKG_CONFIG_PATH=$(dirname "$(find "$where" -name embla.pc)")
    export PKG_CONFIG_PATH
    set --
    ;;
fetch) # an archive with what libembla is built from
    tar -C "$where" -czf "$build.tar.gz" --transform 's|^|embla/|' CMakeLists.txt LICENSE include src cmake
    set -- -DEMBLA="$build.tar.gz"
    ;;
subdirectory) set -- -DEMBLA="$where" ;;
*) fail "this is no way to get Embla" ;;
esac
"$cmake" -S "$project/tests/house/user" -B "$build" -DWAY="$way" "$@" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_C_COMPILER_LAUNCHER="$launcher" -DCMAKE_BUILD_TYPE=Debug >"$build.log" 2>&1 || fail "$(cat "$build.log")"
"$cmake" --build "$build" -j 2 >"$build.log" 2>&1 || fail "$(cat "$build.log")"

ran=
for program in c c_static cpp cpp_static hpp hpp_static; do
    [ -e "$build/$program" ] || continue
    expect="row 2: 5 6"
    case $way-$program in package-c* | pkgconfig-c*) expect="row 2: -0.90 0.10; 3 rows cost 48 bytes" ;; esac
    got=$("$build/$program") || fail "$program failed"
    [ "$got" = "$expect" ] || fail "$program printed: $got"
    ran="$ran $program"
done
case $way in
package) all=" c c_static cpp cpp_static hpp hpp_static" ;;
pkgconfig) all=" c cpp hpp" ;;
*) all=" c c_static hpp hpp_static" ;;
esac
[ "$ran" = "$all" ] || fail "these ran:$ran; expected:$all"
echo "$way:$ran"
