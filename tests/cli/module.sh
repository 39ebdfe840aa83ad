# SPDX-License-Identifier: Apache-2.0
# A folder with a module for pages that only looks like one, so that no case needs a real one.
#   usage: . module.sh    sets EMBLA_PLAY
fake_module() { # FOLDER VERSION
    mkdir -p "$1"
    printf '\037\213no module' >"$1/play.wasm.gz"
    echo "0123456789abcdef  play.wasm.gz  $2" >"$1/play.wasm.gz.sha256"
}
EMBLA_PLAY=$(dirname "$PWD")/module EMBLA_DEMO=$SOURCE/demo
fake_module "$EMBLA_PLAY" "$(embla --version | sed -n 's/^embla //p')"
export EMBLA_PLAY EMBLA_DEMO
# page FILE: the JSON of a page. files FILE: the paths in it. field FILE PATH: a file of it
page() { sed -n 's|.*<script type="application/json" id="page">\(.*\)</script>|\1|p' "$1"; }
files() { sed -n 's|.*<script type="text/plain" class="file" data-path="\([^"]*\)">.*|\1|p' "$1"; }
field() { sed -n "s|.*class=\"file\" data-path=\"$2\">\([^<]*\)</script>|\1|p" "$1" | base64 -d; }
# the page may grow
run() { try "$@" | sed -E 's/[0-9.]+ [kM]B$/N MB/; s/"bytes":[0-9]+/"bytes":N/'; }
