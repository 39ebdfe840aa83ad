# SPDX-License-Identifier: Apache-2.0
# --words highlights rows and always labels them; --only draws nothing else.
. "$SOURCE/tests/cli/models.sh"
fox
run() { try "$@" | sed -E 's/[0-9.]+ kB/N kB/; s/"bytes":[0-9]+/"bytes":N/; s/"share":[^]]*./"share":[..]/'; }
highlighted() { sed -n 's|.*class="word halo">\([^<]*\)</text>|\1|p' "$1" | sort | xargs; }
run map fox.vec -o two.svg --words fox,dog --json
highlighted two.svg
grep -c 'class="m ring"' two.svg
grep -c 'class="label halo soft"' two.svg
# rows by number, once each; the rest of a map without words is as it was
run map fox.vec -o rows.svg --words '#0,fox,#3,fox' --json
highlighted rows.svg
printf 'dog\r\n#2\nfox\n' >list
run map fox.vec -o file.svg --words @list --json
highlighted file.svg
# the page has their row numbers
embla map fox.vec -o two.html --words dog,fox -q
grep -o 'data-picked="[^"]*"' two.html
# only these are drawn, on the plane of all
run map fox.vec -o only.svg --words fox,dog,the --only --json
highlighted only.svg
grep -c 'class="label' only.svg
grep -o '3 of 12 rows x 8' only.svg
run map fox.vec -o only.html --words fox,dog,the --only
grep -o 'data-only="[^"]*"' only.html
# a highlighted row that is far away is in the frame
awk 'BEGIN { print "401 2"; for (i = 0; i < 400; i++) print "w" i, i % 20, int(i / 20); print "far 9000 9000" }' >far.vec
run map far.vec -o far.svg --words far | grep -c beyond
highlighted far.svg
# rows that share a place: all are labelled, away from their points where there is no room
awk 'BEGIN { print "40 2"; for (i = 0; i < 38; i++) print "w" i, 1, 1; print "a -5 0\nb 5 0" }' >same.vec
run map same.vec -o same.svg --words "$(seq -s, -f w%g 0 37)" -q
highlighted same.svg | wc -w
grep -c 'class="leader"' same.svg
# a row that has no position
printf '3 2\na 1 2\nb nan 1\nc 2 1\n' >nan.vec
run map nan.vec -o nan.svg --words a,b
highlighted nan.svg
# what cannot be
try map fox.vec -o x.svg --words fxo
try map fox.vec -o skipped.svg --words fox,cat,fxo
try map fox.vec -o x.svg --words fox,,dog
try map fox.vec -o x.svg --words ''
try map fox.vec -o x.svg --words '#12'
try map fox.vec -o x.svg --words @missing
try map fox.vec -o x.svg --words @.
: >empty
try map fox.vec -o x.svg --words @empty
printf 'fox\n\ndog\n' >gap
try map fox.vec -o skipped.svg --force --words @gap
seq -f '#%g' 0 1000 | sed 's/#.*/fox/' >many
try map fox.vec -o x.svg --words @many
try map fox.vec -o x.svg --rows 2 --words '#2'
try map fox.vec -o x.svg --only
make_model bare.safetensors a.weight:F32:4x4
try map bare.safetensors -o x.svg --words fox
try map bare.safetensors -o x.svg --words '#1' -q
ls x.svg
