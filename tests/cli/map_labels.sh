# SPDX-License-Identifier: Apache-2.0
# Labels of a picture: inside the frame, none over another, on four sides, all rows where there is room.
. "$SOURCE/tests/cli/models.sh"
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
# random ROWS SPREAD: rows in a plane, the same each time
random() {
    awk -v rows="$1" -v spread="$2" 'BEGIN {
        print rows, 2
        for (i = 0; i < rows; i++) {
            s = (s * 69069 + 12345) % 4294967296; x = s / 4294967296
            s = (s * 69069 + 12345) % 4294967296; y = s / 4294967296
            print "word" i, (x - 0.5) * spread, y - 0.5
        }
    }'
}
random 27 1.3 >27.vec
random 200 1.3 >200.vec
random 201 1.3 >201.vec
random 5000 1.3 >5000.vec
for name in 27 200 201 5000; do
    embla map $name.vec -o $name.svg -q
    embla map $name.vec -o words$name.svg -q --words "$(seq -s, -f word%g 3 7 26)"
    embla map $name.vec -o large$name.svg -q --size 2400x1800
done
cat >labels.py <<'PY'
import re, sys
for name in sys.argv[1:]:
    text = open(name + ".svg").read()
    number = lambda key, of: float(re.search(key + '="([-0-9.]+)"', of).group(1))
    frame = re.search('<rect class="frame"[^>]*>', text).group()
    left, top, wide, high = (number(" " + key, frame) for key in ("x", "y", "width", "height"))
    font = float(re.search("text{font-size:([0-9.]+)px}", text).group(1))
    # the letters of "word17" are about 0.58 of the font size wide, and rise 0.75 above the baseline
    boxes = []
    for tag, kind, word in re.findall('(<text [^>]*class="(label|word) halo[^>]*>)([^<]*)', text):
        x, y = number(" x", tag), number(" y", tag)
        boxes.append((x, y - 0.75 * font, x + 0.58 * font * len(word), y + 0.2 * font, word))
    points = [tuple(map(float, p)) for p in re.findall(r"M([0-9.]+) ([0-9.]+)h0", text)]
    over = [(a[4], b[4]) for i, a in enumerate(boxes) for b in boxes[:i]
            if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]]
    out = [b[4] for b in boxes if b[0] < left or b[1] < top or b[2] > left + wide or b[3] > top + high]
    sides = set()
    for b in boxes:
        x, y = min(points, key=lambda p: max(b[0] - p[0], 0, p[0] - b[2]) + max(b[1] - p[1], 0, p[1] - b[3]))
        sides.add("right" if x < b[0] else "left" if x > b[2] else "above" if y > b[3] else "below" if y < b[1] else "on")
    covered = sum(any(b[0] < x < b[2] and b[1] < y < b[3] for x, y in points) for b in boxes)
    least = 27 if name.endswith("27") else 160 if name.endswith("200") else 70 # of 27, 200 or more rows
    print(name, "enough labels;" if len(boxes) >= least else f"{len(boxes)} labels;",
          "over each other:", over, "outside:", out, "sides:", *sorted(sides - {"on"}), end="")
    print("; few over points" if covered < 10 or len(points) > 250 else f"; {covered} over points")
PY
python3 labels.py {,words,large}27 {,words,large}200 {,words,large}201 {,words,large}5000
