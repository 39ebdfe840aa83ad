#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The version has one place, include/embla.h; whatever repeats it says the same. And both copies of the
# licence are equal.
#   usage: release.sh PROJECT BUILD LIBEMBLA.so PROGRAM
set -eu
project=$1 build=$2 library=$3 program=$4
status=0
say() { echo "$@"; status=1; }
version=$("$project/packaging/version")
same() { # WHERE FOUND: FOUND is the version
    [ "$2" = "$version" ] || say "$1 says '$2', include/embla.h says '$version'"
}
same CITATION.cff "$(sed -n 's/^version: //p' "$project/CITATION.cff")"
same CHANGELOG.md "$(sed -n 's/^## \([0-9.]*\).*/\1/p' "$project/CHANGELOG.md" | head -n 1)"
same "the program" "$("$program" --version | sed -n '1s/^embla \([0-9.]*\).*/\1/p')"
same docs/man/embla.1 "$(sed -n 's/^\.TH .*"Embla \([0-9.]*\)".*/\1/p' "$project/docs/man/embla.1")"
same embla.pc "$(sed -n 's/^Version: //p' "$build/packaging/embla.pc")"
same embla.cdx.json "$(sed -n '/"bom-ref": "embla"/,/version/s/.*"version": "\(.*\)".*/\1/p' "$build/embla.cdx.json")"
soname=$(objdump -p "$library" | sed -n 's/^ *SONAME *//p')
same "the name of the library, $soname, with PATCH," "${soname#libembla.so.}.${version##*.}"
cmp "$project/LICENSE" "$project/LICENSES/Apache-2.0.txt" || status=1
exit $status
