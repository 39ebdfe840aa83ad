#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs one case of the command-line tests: run.sh [--refresh] EMBLA CASE.sh
#
# A case is a script. What it prints must equal CASE.out, its stderr CASE.err (empty
# if there is no such file), its exit code CASE.exit (0 if there is none). It runs in
# an empty folder with the program on PATH as `embla`, $SOURCE naming the repository
# and the function `try`, which shows a command with its output and exit code.
# Exit code 77 means skipped. --refresh writes the expected files instead.
set -u

refresh=false
if [[ ${1-} == --refresh ]]; then
    refresh=true
    shift
fi
if [[ $# -ne 2 ]]; then
    echo "usage: run.sh [--refresh] EMBLA CASE.sh" >&2
    exit 2
fi
program=$(realpath "$1") || exit 2
case=$(realpath "$2") || exit 2
expected=${case%.sh}
SOURCE=$(realpath "$(dirname "$0")/../..")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/work"
ln -s "$program" "$folder/bin/embla"
export PATH="$folder/bin:$PATH" LC_ALL=C SOURCE

try() {
    echo "\$ embla $*"
    embla "$@" 2>&1
    echo "exit $?"
}

(cd "$folder/work" && . "$case") >"$folder/out" 2>"$folder/err" </dev/null
code=$?
if [[ $code -eq 77 ]]; then
    cat "$folder/out"
    exit 77
fi

if $refresh; then
    cp "$folder/out" "$expected.out"
    rm -f "$expected.err" "$expected.exit"
    [[ -s $folder/err ]] && cp "$folder/err" "$expected.err"
    [[ $code -ne 0 ]] && echo "$code" >"$expected.exit"
    exit 0
fi

wrong=0
want=0
[[ -e $expected.exit ]] && want=$(<"$expected.exit")
if [[ $code -ne $want ]]; then
    echo "exit code $code, expected $want"
    wrong=1
fi
err=/dev/null
[[ -e $expected.err ]] && err=$expected.err
diff -u --label expected.out --label out "$expected.out" "$folder/out" || wrong=1
diff -u --label expected.err --label err "$err" "$folder/err" || wrong=1
exit $wrong
