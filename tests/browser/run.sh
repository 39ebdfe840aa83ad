#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Opens maps, films, the page of play or the documentation site in a real browser:
#   run.sh map|film|play|site EMBLA [PICTURES]
#
# Needs node, chromium and playwright-core; where one is missing the test is skipped (77).
# playwright-core is looked for in the folder that EMBLA_PLAYWRIGHT names, as
#   npm install --prefix FOLDER playwright-core
# makes it. With PICTURES, a folder, what was seen is kept there. EMBLA_TEST_SLOW: a build that
# is slow on purpose, which makes a smaller map and is not held to a time.
set -u
what=$1
program=$(realpath "$2") || exit 2
pictures=${3:+$(realpath "$3")}
here=$(realpath "$(dirname "$0")")
skip() {
    echo "skipped: $*"
    exit 77
}
command -v node >/dev/null || skip "node is not here"
browser=${EMBLA_CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)} ||
    skip "chromium is not here"
[[ -d ${EMBLA_PLAYWRIGHT-}/node_modules/playwright-core ]] ||
    skip "playwright-core is not here; npm install --prefix FOLDER playwright-core, and EMBLA_PLAYWRIGHT=FOLDER"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 2

. "$here/$what.sh" # makes the pages, or says why it cannot
node "$here/$what.mjs" "$browser" "$folder" ${pictures:+"$pictures"} || exit 1
[[ -e $here/${what}_firefox.mjs ]] || exit 0
firefox=$(command -v firefox-esr || command -v firefox)
if [[ -z $firefox || ! -d $EMBLA_PLAYWRIGHT/node_modules/puppeteer-core ]]; then
    echo "note: firefox or puppeteer-core is not here, so only Chromium was tried"
    exit 0
fi
timeout 200 node "$here/${what}_firefox.mjs" "$firefox" "$folder" ${pictures:+"$pictures"}
