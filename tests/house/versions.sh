#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program that links libembla_lab starts with the libembla of the same version. With one of
# another version the loader refuses to start it, and names the version it misses.
#   usage: versions.sh PROJECT BUILD CC LIBEMBLA.so LIBEMBLA_TEXT.so LIBEMBLA_LAB.so LIBEMBLA.a LIBRARIES..
set -eu
project=$1 build=$2 cc=$3 embla=$4 text=$5 lab=$6 archive=$7
shift 7
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/same" "$work/other"
soname=$(objdump -p "$embla" | awk '$1 == "SONAME" {print $2}')
private=$(sed -n 's/^\(EMBLA_PRIVATE_[0-9.]*\) {$/\1/p' "$build/embla.map")
cp "$embla" "$work/same/$soname"
for folder in same other; do
    for library in "$text" "$lab"; do
        cp "$library" "$work/$folder/$(objdump -p "$library" | awk '$1 == "SONAME" {print $2}')"
    done
done

# The same objects, linked as the next version would be.
sed 's/^EMBLA_PRIVATE_[0-9.]* {$/EMBLA_PRIVATE_9.9.9 {/' "$build/embla.map" >"$work/other.map"
$cc -shared -o "$work/other/$soname" -Wl,-soname,"$soname" -Wl,--version-script="$work/other.map" \
    -Wl,--whole-archive "$archive" -Wl,--no-whole-archive "$@" -lm
$cc -I"$project/include" "$project/tests/house/user/user.c" -o "$work/user" "$lab" "$text" "$embla"

got=$(LD_LIBRARY_PATH=$work/same "$work/user")
case "$got" in
"row 2: "*) ;;
*) echo "with its own libembla the program printed: $got"; exit 1 ;;
esac
if got=$(LD_LIBRARY_PATH=$work/other "$work/user" 2>&1); then
    echo "a libembla of another version was accepted; the program printed: $got"
    exit 1
fi
case "$got" in
*"version \`$private' not found (required by "*libembla_*) echo "refused: ${got#*: }" ;;
*) echo "the program failed, but not because of the version: $got"; exit 1 ;;
esac
