# SPDX-License-Identifier: Apache-2.0
# PNG pictures: size, title, themes, words of any script, systems without fonts; or a sentence that
# names what is not there. No pixel of a letter is compared: letters depend on the fonts.
. "$SOURCE/tests/cli/models.sh"
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
fox
embla map fox.vec -o try.png -q 2>&1 | grep -q 'write .svg or .html' && { echo "skipped: without Cairo and Pango"; exit 77; }
try map fox.vec -o fox.png -q --size 600x450 --title $'Fox \xff'
try map fox.vec -o dark.png -q --size 640x480 --theme dark --color none
try map fox.vec -o words.png -q --size 640x480 --words fox,dog
printf '7 2\n\xe6\x97\xa5\xe6\x9c\xac 1 2\n\xd9\x85\xd8\xb1\xd8\xad 2 1\n\xc3\xa9tude 3 5\na\xcc\x81 0 0\n\xf0\x9f\x98\x80 4 4\n\xff 5 1\n\xe2\x96\x81the 1 5\n' >odd.vec
try map odd.vec -o odd.png -q --title $'\xe6\x97\xa5\xe6\x9c\xac'
echo '<?xml version="1.0"?><fontconfig></fontconfig>' >none.conf
FONTCONFIG_FILE=$PWD/none.conf try map odd.vec -o none.png -q
# width, height, bits, colour
for f in fox dark odd; do od -An -tu1 -j16 -N10 $f.png; done
python3 - {fox,dark,words,odd,none}.png <<'PY'
import sys, zlib
for name in sys.argv[1:]:
    data, at, pixels, title = open(name, "rb").read(), 8, b"", None
    while at < len(data):
        n, kind = int.from_bytes(data[at:at + 4], "big"), data[at + 4:at + 8]
        assert zlib.crc32(data[at + 4:at + 8 + n]) == int.from_bytes(data[at + 8 + n:at + 12 + n], "big")
        if kind == b"IDAT": pixels += data[at + 8:at + 8 + n]
        if kind == b"iTXt": title = data[at + 8:at + 8 + n].split(b"\0")
        at += 12 + n
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    raw = zlib.decompress(pixels)
    assert len(raw) == height * (1 + 3 * width)
    last, seen, papers = bytes(3 * width), 0, 0
    for y in range(height if width < 700 else 0):  # undo the filters, then count what is neither paper nor ink
        kind, line = raw[y * (1 + 3 * width)], bytearray(raw[y * (1 + 3 * width) + 1:(y + 1) * (1 + 3 * width)])
        for i in range(3 * width):
            a, b, c = line[i - 3] if i > 2 else 0, last[i], last[i - 3] if i > 2 else 0
            p = a + b - c
            paeth = a if abs(p - a) <= abs(p - b) and abs(p - a) <= abs(p - c) else b if abs(p - b) <= abs(p - c) else c
            line[i] = (line[i] + [0, a, b, (a + b) // 2, paeth][kind]) & 255
        seen += sum(max(line[i:i + 3]) - min(line[i:i + 3]) > 60 for i in range(0, 3 * width, 3))
        papers += sum(line[i:i + 3] == (b"\x12\x14\x19" if name == "dark.png" else b"\xfb\xfb\xfa") for i in range(0, 3 * width, 3))
        last = line
    print(name, "whole,", ascii([part.decode() for part in title]), end="")
    if width < 700:
        print(", points are seen" if seen > 12 * 20 else f", {seen} coloured pixels", end="")
        print("" if papers > width * height / 2 else f", {papers} pixels of paper", end="")
    print()
PY
