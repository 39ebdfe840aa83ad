#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares the results of the program `bits` with the list bits.txt, and prints the names of the
# first results that differ.
#   usage: run.sh LIST THREADS KERNELS COMMAND..
# KERNELS is a kernel set; "any" means the one that the CPU gets. COMMAND is the program, after an
# emulator if there is one. To accept new results: run.sh --refresh LIST COMMAND.. (scalar kernels).
set -eu
refresh=no
if [ "$1" = --refresh ]; then
    refresh=yes list=$2 threads=1 kernels=scalar
    shift 2
else
    list=$1 threads=$2 kernels=$3
    shift 3
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/files"
if [ "$kernels" = any ]; then
    unset EMBLA_ISA
    set -- "$@" "$folder/files" "$threads"
else
    export EMBLA_ISA="$kernels"
    set -- "$@" "$folder/files" "$threads" "$kernels"
fi
code=0
"$@" >"$folder/found" || code=$?
if [ "$code" -ne 0 ]; then
    tail -n 1 "$folder/found"
    exit "$code"
fi
if [ "$refresh" = yes ]; then
    cp "$folder/found" "$list"
    exit 0
fi
awk '
{ sub(/\r$/, "") } # Windows ends lines so
NR == FNR { wanted[$1] = $2; next }
{ found[$1] = 1; total++ }
!($1 in wanted) { print $1 ": is not in the list"; bad++; next }
wanted[$1] != $2 && ++bad <= 20 { print $1 ": " $2 ", but the list has " wanted[$1] }
END {
    for (name in wanted) if (!(name in found)) { print name ": was not computed"; bad++ }
    print total " results, " bad + 0 " differ from the list"
    exit bad > 0
}' "$list" "$folder/found"
[ -z "$(ls -A "$folder/files")" ] || { echo "files were left in the folder"; exit 1; }
