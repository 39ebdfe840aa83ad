# SPDX-License-Identifier: Apache-2.0
# --arrows: the picture of an analogy, in a page and in pictures.
. "$SOURCE/tests/cli/models.sh"
fox
cp "$SOURCE/demo/words.vec" .
run() { try "$@" | sed -E 's/[0-9.]+ kB/N kB/; s/"bytes":[0-9]+/"bytes":N/; s/"share":[^]]*./"share":[..]/'; }
highlighted() { sed -n 's|.*class="word halo">\([^<]*\)</text>|\1|p' "$1" | sort | xargs; }
run map words.vec -o a.svg --arrows king:queen,man:woman --json
highlighted a.svg
grep -c 'class="arrow"' a.svg
grep -c 'class="head"' a.svg
# their ends and other words; an end may be in several arrows; only these are drawn
run map words.vec -o b.svg --words cat,king --arrows king:queen,king:prince --only
highlighted b.svg
grep -c 'class="arrow"' b.svg
# by number, with a word that contains a colon
printf '3 2\n:a 0 1\nb: 5 0\nc:d 0 5\n' >colon.vec
run map colon.vec -o c.svg --arrows '#0:#1,:a:b:' --json
# the page has the pairs; without --arrows none
embla map words.vec -o a.html --arrows king:queen,man:woman -q
grep -o 'data-arrows="[^"]*"' a.html
embla map words.vec -o n.html -q
grep -o 'data-arrows="[^"]*"' n.html
# a plane of neighbours has no directions: --arrows chooses PCA, unless a layout is given
awk 'BEGIN { print "600 3"; for (i = 0; i < 600; i++) print "w" i, sin(i), cos(i), i % 7 }' >many.vec
embla map many.vec -o m.svg --arrows w1:w2 --json | grep -o '"layout":"[a-z]*"'
embla map many.vec -o m.svg --arrows w1:w2 --layout neighbours --json --force | grep -o '"layout":"[a-z]*"'
# an arrow between points that touch, or from a row to itself, is not drawn
printf '3 2\na 1 1\nb 1 1\nc 5 0\n' >same.vec
embla map same.vec -o s.svg --arrows a:b,c:c,a:c -q
grep -c 'class="arrow"' s.svg
# the head is at the second row: on a plane of one direction, to the right
printf '2 2\na 1 1\nb 9 1\n' >right.vec
embla map right.vec -o r.svg --arrows a:b -q
tip() { sed -n 's|.*class="arrow"[^>]*d="M\([0-9.]*\) .*class="head" d="M\([0-9.]*\) .*|\1 \2|p' "$1"; }
tip r.svg | awk '{ print ($2 > $1 ? "to the right" : "to the left") }'
embla map right.vec -o l.svg --arrows b:a -q
tip l.svg | awk '{ print ($2 > $1 ? "to the right" : "to the left") }'
# what cannot be
try map words.vec -o x.svg --arrows king
try map words.vec -o x.svg --arrows king:
try map words.vec -o x.svg --arrows :queen
try map words.vec -o x.svg --arrows ''
try map words.vec -o x.svg --arrows king:queen,
try map words.vec -o x.svg --arrows king:queen,,man:woman
try map words.vec -o x.svg --arrows king:qeen
try map words.vec -o skipped.svg --arrows kong:qeen,man:woman
try map words.vec -o x.svg --arrows '#0:#300'
try map words.vec -o x.svg --rows 2 --arrows '#0:#2'
try map words.vec -o x.svg --arrows "$(seq -s, -f '#%g:#0' 1 101)" | tail -n 2
try map words.vec -o x.svg --only
try map words.vec -o x.svg --layout arrows
[[ -e x.svg ]] || echo "nothing is written"
