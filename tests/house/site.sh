#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The pages of the documentation site can be written: each link between files of the project leads to
# one, and each name of the Python package has its place. The man pages of the headers render without a
# warning. packaging/docs builds the site itself, and .ci/nightly checks it.
#   usage: site.sh PROJECT
set -eu
command -v python3 >/dev/null || { echo "skipped: python3 is not here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
LC_ALL=C.UTF-8 python3 "$1/docs/site/pages.py" "$1" "$work/pages"
for header in "$1"/include/*.h; do
    page=$work/$(basename "$header" .h).3
    LC_ALL=C.UTF-8 python3 "$1/docs/site/headers.py" --man "$header" >"$page"
    # each function of the header is named in its page
    for name in $(sed -n 's/^EMBLA_API.*[ *]\(embla_[a-z0-9_]*\)(.*/\1/p' "$header"); do
        grep -q "$name" "$page" || { echo "$page has no $name"; exit 1; }
    done
    if command -v groff >/dev/null; then
        said=$(groff -man -Tutf8 -ww "$page" 2>&1 >/dev/null)
        [ -z "$said" ] || { echo "$said"; exit 1; }
    fi
done
