# SPDX-License-Identifier: Apache-2.0
# The three kinds of file, and what is said about them.
. "$SOURCE/tests/cli/models.sh"
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
fox
run() { try "$@" | sed -E 's/[0-9.]+ kB/N kB/; s/"bytes":[0-9]+/"bytes":N/'; } # the page may grow
run map fox.vec -o fox.html
embla map fox.vec --format svg -o - >piped.svg && head -c 4 piped.svg && echo
run map fox.vec -o fox.svg --title 'Twelve <words> & "more"' --color norm
run map fox.vec --format svg -o plain --color none --theme dark --size 640x480 --json
run map fox.vec -o half.htm --rows 6 --neighbours 3 --json
embla map fox.vec -o - --format svg | head -n 1 | cut -c 1-60
# it is XML, and HTML with all it needs in it
python3 -c 'import sys, xml.dom.minidom as x
for f in sys.argv[1:]: print(f, len(x.parse(f).getElementsByTagName("text")), "texts")' fox.svg plain
grep -c 'Twelve &#60;words&#62; &#38; &#34;more&#34;' fox.svg
embla map fox.vec -o title.html -q --title '<b>&"title"'
grep -o '<title>.*</title>\|data-title="[^ ]*' title.html
grep -o '<script type="text/plain" id="[a-z-]*"' half.htm
grep -o 'data-rows="6" data-all="12" data-dim="8" data-nonfinite="0"' half.htm
# numbers of the page: places within -1..1, norms, words
field() { sed -n "s|.*id=\"data-$2\">\([^<]*\)</script>|\1|p" "$1" | base64 -d; }
field half.htm words
echo
field half.htm norm | od -An -tf4 -v | head -n 2
field half.htm xy | od -An -tf4 -v -w8 | awk '{ for (i = 1; i <= 2; i++) if ($i > most) most = $i; else if ($i < least) least = $i } END { print NR " places from " least " to " most }'
# the neighbours are those of embla near: row in three bytes, score in two
for row in 0 11; do
    field fox.html near | od -An -tu1 -v -w5 | awk -v from=$((8 * row)) 'NR > from && NR <= from + 4 { printf "%d %.3f\n", $1 + 256 * $2 + 65536 * $3, ($4 + 256 * $5) / 65535 * 2 - 1 }' >page
    embla near fox.vec "#$row" --top 4 | awk '{ printf "%d %.3f\n", $(NF - 1), $NF }' | diff - page && echo "row $row: the same neighbours"
done
# nothing is fetched: there is no address in it but the SVG's name of its own language
grep -o 'https\?://[a-z.0-9/]*' fox.html fox.svg | sort | uniq -c | sed 's/^ *//'
for threads in 1 2 3; do embla map fox.vec -o t$threads.html --threads $threads -q; done
cmp t1.html t2.html && cmp t1.html t3.html && echo "the same for any number of threads"
