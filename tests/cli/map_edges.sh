# SPDX-License-Identifier: Apache-2.0
# Tables that are hardly any: one row, one number, rows that are alike, that are no numbers.
. "$SOURCE/tests/cli/models.sh"
table() { printf "$2" >"$1.vec"; }
table one '1 3\none 1 2 3\n'
table two '2 3\none 1 2 3\ntwo 3 1 2\n'
table same '4 2\na 1 2\nb 1 2\nc 1 2\nd 1 2\n'
table zeros '3 2\na 0 0\nb 0 0\nc 0 0\n'
table nan '5 3\na 1 2 3\nb nan 1 2\nc 2 1 0\nd inf 1 0\ne -1 0 5\n'
table none '2 2\na nan nan\nb inf 1\n'
table line '4 1\na 1\nb 2\nc -3\nd 0\n'
table huge '3 2\na 1e38 1e38\nb -1e38 1e38\nc 1 1\n'
table tiny '3 2\na 1e-42 2e-42\nb -1e-42 1e-42\nc 3e-43 0\n'
for name in one two same zeros nan none line huge tiny; do
    try map $name.vec -o $name.html | sed -E 's/[0-9.]+ kB/N kB/'
    embla map $name.vec -o $name.svg -q --title x || echo "svg: exit $?"
    grep -c 'nan\|inf' $name.svg
done
# places and norms: NaN where a row has none, 0 where all are in one place
field() { sed -n "s|.*id=\"data-$2\">\([^<]*\)</script>|\1|p" "$1" | base64 -d; }
for name in nan same; do
    field $name.html xy | od -An -tf4 -v -w8 | sed -E 's/ +/ /g; s/-nan/nan/g; s/(\.[0-9]{3})[0-9]+/\1/g'
    field $name.html norm | od -An -tf4 -v -w4 | sed -E 's/ +/ /g; s/-nan/nan/g'
done
# a row far away is told of, and does not make a spot of the others
awk 'BEGIN { print "401 2"; for (i = 0; i < 400; i++) print "w" i, i % 20, int(i / 20); print "far 9000 9000" }' >far.vec
try map far.vec -o far.svg
embla map far.vec -o far.html -q
grep -o 'data-home="[^"]*"' far.html
# rows above 255 are neighbours as well
field far.html near | od -An -tu1 -v -w5 | awk 'NR > 8 * 310 && NR <= 8 * 310 + 8 { print $1 + 256 * $2 + 65536 * $3 }' >page
embla near far.vec '#310' --top 8 | awk '{ print $(NF - 1) }' | diff - page && echo "the same neighbours"
# words that would be markup
printf '3 2\n<b>&amp; 1 2\n\xff" 2 1\n\xe2\x80\xaeevil 0 1\n' >evil.vec
embla map evil.vec -o evil.svg -q
grep -o 'class="label[^/]*' evil.svg
# words of tokens that a mapping sends to rows
mkdir m
make_model m/model.safetensors embeddings:F32:4x3 mapping:I32:10:mod=4 weights:F32:10
words 10 >m/vocab.txt
embla map m -o m.html -q
sed -n 's|.*id="data-words">\([^<]*\)</script>|\1|p' m.html | base64 -d
echo
# rows that have no word: a lone backslash
mkdir gaps
make_model gaps/model.safetensors wte.weight:F32:4x3
printf '{"a":0,"\\\\":2}' >gaps/vocab.json
embla map gaps -o gaps.html -q
field gaps.html words
echo
