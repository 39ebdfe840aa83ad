# SPDX-License-Identifier: Apache-2.0
# --film writes one small page that asks for nothing, also after an interruption, and never over a
# file that is there.
cp "$SOURCE/demo/names.txt" .
facts() { # the parts of a page, and what must not be in it
    grep -c '<script type="text/plain"' "$1"
    ! grep -E 'https?:|//[a-z]+\.| src=|@import|url\(' "$1" || echo "$1 asks for something"
    (($(wc -c <"$1") < 300000)) || echo "$1 is too large: $(wc -c <"$1")"
    sed -n 's|.*id="data-film">\(.*\)</script>|\1|p' "$1" | base64 -d >film.json
}
embla train names.txt --preset microgpt -o n --film n.html --quiet | sed -n '/^film/p' | sed 's/[0-9.]* kB/.. kB/'
facts n.html
grep -o '"rows":[0-9]*,"all":[0-9]*,"dim":[0-9]*,"steps":[0-9]*' film.json
grep -o '"numbers":\[0,1,2,' film.json
grep -o '"words":\["a","b",' film.json
grep -o '"moments":\[\[0,' film.json
grep -o '\[1000,' film.json
grep -oE '"texts":\[\[0,' film.json
grep -oE '\],\[[0-9]+,"[^"]' film.json | wc -l | awk '{ print ($1 > 5 && $1 < 15) ? "texts" : $0 }'

echo "-- the watched rows, on axes of pairs"
embla train names.txt --preset microgpt --steps 30 -o w --film w.html --watch e,m --film-axes 'a:e,b:#3' --quiet >/dev/null
facts w.html
grep -o '"numbers":\[[0-9,]*\]' film.json
grep -o '"axes":\[[0-9,]*\]' film.json

echo "-- continued"
embla train --resume w --steps 50 --film again.html --quiet >/dev/null
facts again.html
grep -o '"moments":\[\[30,' film.json
grep -o '\[50,' film.json

echo "-- ended early"
embla train names.txt --preset microgpt --steps 100000000 --minutes 0.01 -o early --film early.html --quiet >/dev/null
facts early.html
grep -o '"steps":100000000' film.json

echo "-- a large table: the most frequent words"
cp "$SOURCE/README.md" text.md
embla train text.md --words 600 --steps 3 --layers 1 --dim 16 --heads 2 -o large --film large.html --quiet >/dev/null
facts large.html
grep -o '"rows":[0-9]*,"all":[0-9]*' film.json

echo "-- refused, before anything is written"
refused() { try train names.txt --preset microgpt --steps 5 -o x "$@" | sed "s|$PWD/||g"; }
refused --film n.html
refused --film x.svg
refused --film nowhere/x.html
refused --film-axes a:b,c:d
refused --film x.html --film-axes a:b
refused --film x.html --film-axes a:b,c:d,e:f
refused --film x.html --film-axes a:b,c:zzz
refused --film x.html --film-axes a:b,b:a
refused --film names.txt
try train --resume w --film w.html | tail -2
ls
embla train names.txt --preset microgpt --steps 5 -o x --film n.html --force --json | grep -o '"film":.*'
