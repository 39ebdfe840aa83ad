#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/data/fetch: takes files of one commit from a repository that stands in for GitHub's, packs
# and checks them, refuses other bytes, and does not fetch twice. The files of EMBLA_DATA, where it is
# set, are those of tests/data/sources.txt.
#   usage: fetch.sh PROJECT
set -eu
for program in git python3 xz; do
    command -v $program >/dev/null || { echo "skipped: there is no $program"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
HOME=$work/home
export HOME GIT_CONFIG_NOSYSTEM=1
mkdir -p "$HOME" "$work/data" "$work/repository/texts"
cat >"$HOME/.gitconfig" <<END
[user]
	name = test
	email = test@localhost
[url "file://$work/repository"]
	insteadOf = https://github.com/someone/texts.git
[uploadpack]
	allowAnySHA1InWant = true
	allowFilter = true
END
cd "$work/repository"
git init --quiet .
printf 'one\ntwo\n' >texts/plain.txt
printf 'three\r\nfour' >texts/packed.txt
printf '* text=auto eol=crlf\n' >.gitattributes # a checkout would change the bytes
git -c core.safecrlf=false add . && git commit --quiet -m first
commit=$(git rev-parse HEAD)
printf 'later\n' >texts/plain.txt
git -c core.safecrlf=false commit --quiet -am later
sum() { sha256sum | cut -d ' ' -f 1; }
cp "$1/tests/data/fetch" "$work/data/"
sources() { # SHA256 of plain.txt
    printf '[github someone/texts %s]\nlicence none, a test\n%s made/plain.txt texts/plain.txt\n' "$commit" "$1"
    git show "$commit:texts/packed.txt" >"$work/packed"
    printf '%s made/packed.txt.xz texts/packed.txt %s\n' "$(xz -9e -T1 -c "$work/packed" | sum)" "$(sum <"$work/packed")"
} >"$work/data/sources.txt"

sources "$(printf 'one\ntwo\n' | sum)"
"$work/data/fetch" "$work/got" | grep '^2 files are right, 0 are wrong or missing$'
[ "$(cat "$work/got/made/plain.txt")" = "$(printf 'one\ntwo\n')" ]
xz -dc "$work/got/made/packed.txt.xz" | cmp - "$work/packed"
mv "$work/repository" "$work/gone"
"$work/data/fetch" "$work/got" made >"$work/said" # nothing is fetched again
grep -q '^2 files are right, 0 are wrong or missing$' "$work/said"
xz -6 -c "$work/packed" >"$work/got/made/packed.txt.xz" # packed otherwise, the same contents
"$work/data/fetch" "$work/got" >/dev/null
echo broken >"$work/got/made/plain.txt"
"$work/data/fetch" --check "$work/got" | grep '^missing: made/plain.txt: its SHA-256 is wrong$'
if "$work/data/fetch" "$work/got" >"$work/said"; then echo "a missing source was not noticed"; exit 1; fi
grep -q '^missing: made/plain.txt: .*failed' "$work/said"
mv "$work/gone" "$work/repository"
sources "$(printf 'other\n' | sum)"
if "$work/data/fetch" "$work/got" >"$work/said"; then echo "other bytes were accepted"; exit 1; fi
grep 'plain.txt has the SHA-256 .*; expected' "$work/said"

"$1/tests/data/fetch" --list | awk -F '\t' 'NF != 3 || $3 == "" { bad = 1 } END { exit bad || NR < 100 }'
if [ -d "${EMBLA_DATA-}" ]; then
    "$1/tests/data/fetch" --check "$EMBLA_DATA" >"$work/said" || true # some may not be there
    if grep 'SHA-256 is wrong' "$work/said"; then exit 1; fi
    grep 'files are right' "$work/said"
fi
