# SPDX-License-Identifier: Apache-2.0
# PNG pictures: size, title, themes; or a sentence where libpng was not there to build with.
. "$SOURCE/tests/cli/models.sh"
[[ -x /usr/bin/python3 ]] || { echo "skipped: there is no /usr/bin/python3"; exit 77; }
fox
embla map fox.vec -o try.png 2>&1 | grep -q 'without libpng' && { echo "skipped: built without libpng"; exit 77; }
try map fox.vec -o fox.png -q --size 200x150 --title $'Fox \xff'
try map fox.vec -o dark.png -q --size 320x200 --theme dark --color none
# width, height, bits, colour
for f in fox dark; do od -An -tu1 -j16 -N10 $f.png; done
strings fox.png | grep -c 'Fox ?'
/usr/bin/python3 - fox.png dark.png <<'PY'
import sys, zlib
for name in sys.argv[1:]:
    data, at, pixels = open(name, "rb").read(), 8, b""
    while at < len(data):
        n, kind = int.from_bytes(data[at:at + 4], "big"), data[at + 4:at + 8]
        assert zlib.crc32(data[at + 4:at + 8 + n]) == int.from_bytes(data[at + 8 + n:at + 12 + n], "big")
        if kind == b"IDAT": pixels += data[at + 8:at + 8 + n]
        at += 12 + n
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    raw = zlib.decompress(pixels)
    assert len(raw) == height * (1 + 3 * width)
    last, seen = bytes(3 * width), 0
    for y in range(height):  # undo the filters, then count what is neither paper nor ink
        kind, line = raw[y * (1 + 3 * width)], bytearray(raw[y * (1 + 3 * width) + 1:(y + 1) * (1 + 3 * width)])
        for i in range(3 * width):
            a, b, c = line[i - 3] if i > 2 else 0, last[i], last[i - 3] if i > 2 else 0
            p = a + b - c
            paeth = a if abs(p - a) <= abs(p - b) and abs(p - a) <= abs(p - c) else b if abs(p - b) <= abs(p - c) else c
            line[i] = (line[i] + [0, a, b, (a + b) // 2, paeth][kind]) & 255
        seen += sum(max(line[i:i + 3]) - min(line[i:i + 3]) > 60 for i in range(0, 3 * width, 3))
        last = line
    print(name, "whole,", "points are seen" if seen > 12 * 20 else f"{seen} coloured pixels")
PY
