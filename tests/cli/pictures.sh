# SPDX-License-Identifier: Apache-2.0
# For cases that look into pictures.
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }

# texts FILE.svg..: every text of a picture, which must be XML with a title and a description
texts() {
    python3 - "$@" <<'PY'
import sys, xml.dom.minidom as x
for name in sys.argv[1:]:
    page = x.parse(name).documentElement
    named = [page.getElementsByTagName(tag)[0].firstChild.data for tag in ("title", "desc")]
    assert page.tagName == "svg" and all(named), name
    print(name, page.getAttribute("width"), "x", page.getAttribute("height"))
    for line in named: print(ascii(line))
    width, height = float(page.getAttribute("width")), float(page.getAttribute("height"))
    for text in page.getElementsByTagName("text"):
        assert -1 < float(text.getAttribute("x")) < width and 0 < float(text.getAttribute("y")) < height, text.toxml()
    print(ascii(" | ".join(t.firstChild.data for t in page.getElementsByTagName("text") if t.firstChild)))
PY
}

# five: the table of 5 x 4 of the documents
five() {
    printf '5 4\na 0.10 -0.20 0.30 -0.40\nb 0.50 0.60 -0.70 0.80\nc -0.90 0.10 0.20 -0.30\nd 0.40 -0.50 0.60 -0.70\ne -0.10 0.80 -0.40 0.50\n' >five.vec
}
