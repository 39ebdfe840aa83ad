# SPDX-License-Identifier: Apache-2.0
# Pictures as PNG: the size of the SVG times two, and its title; or a sentence that names what is
# missing.
. "$SOURCE/tests/cli/models.sh"
. "$SOURCE/tests/cli/pictures.sh"
fox
cp -r "$SOURCE/demo/names" .
embla lookup fox.vec the -o try.png 2>&1 | grep -q 'write .svg or .html' && { echo "skipped: without Cairo and Pango"; exit 77; }
same() { # NAME: NAME.svg and NAME.png are the same picture
    python3 - $1 <<'PY'
import sys, xml.dom.minidom as x, zlib
name = sys.argv[1]
page = x.parse(name + ".svg").documentElement
data, at, title, pixels = open(name + ".png", "rb").read(), 8, None, b""
while at < len(data):
    n, kind = int.from_bytes(data[at:at + 4], "big"), data[at + 4:at + 8]
    if kind == b"iTXt": title = data[at + 8:at + 8 + n].split(b"\0")[-1].decode()
    if kind == b"IDAT": pixels += data[at + 8:at + 8 + n]
    at += 12 + n
width, height = (int.from_bytes(data[i:i + 4], "big") for i in (16, 20))
assert (width, height) == tuple(2 * int(page.getAttribute(s)) for s in ("width", "height"))
assert title == page.getElementsByTagName("title")[0].firstChild.data
raw = zlib.decompress(pixels)
colors = len({raw[i:i + 3] for i in range(0, len(raw), 301)})
print(name, "has the size and the title of the SVG,", "many colours" if colors > 12 else f"{colors} colours")
PY
}
run() { embla "${@:2}" -o $1.svg && embla "${@:2}" -o $1.png && same $1; } # NAME VERB..
run lookup lookup fox.vec the quick brown fox .
run embed embed names e --first-position 2
run waves embed --positions sinusoidal
run dials embed --positions rotary
run pair compare fox.vec dog fox
run matrix compare fox.vec the quick brown fox
run predict predict names emm --attention
seq 300 | tr 0-9 a-j >names.txt
for dims in 4 4,8; do # the second time it replaces its pictures
    for ending in svg png; do
        embla train names.txt --preset microgpt --steps 9 --try dim=$dims --plot losses.$ending -q >/dev/null
    done
    same losses
done
embla lookup fox.vec the --format png | head -c 4 | od -An -c
