# SPDX-License-Identifier: Apache-2.0
# The picture of a lookup in files: the same bytes every time, XML, a page without network.
. "$SOURCE/tests/cli/models.sh"
. "$SOURCE/tests/cli/pictures.sh"
fox
five
embla lookup five.vec --ids 2,3,0 -o five.svg && cat five.svg
embla lookup five.vec --ids 2,3,0 --format svg | cmp - five.svg && echo "the same bytes"
embla lookup fox.vec the quick brown fox . -o fox.svg && texts fox.svg
# the word . is no folder, which would have the file in it
embla lookup fox.vec the . -o fox.svg --force && echo "replaced"
# more numbers without digits, fewer with; more tokens than there is room for
cp "$SOURCE/demo/words.vec" .
embla lookup words.vec king queen cat -o wide.svg --dim 32 && texts wide.svg
embla lookup words.vec king -o narrow.svg --dim 2 && texts narrow.svg
seq 0 40 | embla lookup words.vec --ids - -o many.svg && texts many.svg | sed -n 1,3p
embla lookup words.vec --ids 290 -o last.svg && texts last.svg
# numbers that are not finite, a row of zeros, words of any script
printf '4 3\n\xe6\x97\xa5\xe6\x9c\xac nan 1 0\n<b>&"\xff inf -inf 2e9\nzero 0 0 0\n\xd9\x85\xd8\xb1 1 2 3\n' >odd.vec
embla lookup odd.vec --ids 0,1,2,3 -o odd.svg && texts odd.svg
# a mapping of tokens to rows, and a word that has n-grams instead of a row
mkdir m
make_model m/model.safetensors embeddings:F32:4x3 mapping:I32:10:mod=4 weights:F32:10
words 10 >m/vocab.txt
embla lookup m w6 w2 -o mapped.svg && texts mapped.svg
# the page: a title, the picture without a second one, no script, no address but the name of SVG
embla lookup fox.vec the fox -o fox.html
python3 - <<'PY'
import html.parser, re
page = open("fox.html", encoding="utf-8").read()
found = []
class Reader(html.parser.HTMLParser):
    def handle_starttag(self, tag, attributes): found.append(tag)
Reader().feed(page)
print([tag for tag in found if tag in ("html", "title", "h1", "p", "svg", "figcaption", "script", "link")])
print(sorted(set(re.findall(r"https?://[^\"' >]*", page))), "prefers-color-scheme:dark" in page)
print(re.search(r"<h1>.*</h1>", page).group(), page.count("Lookup in fox.vec"))
PY
