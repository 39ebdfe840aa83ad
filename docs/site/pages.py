#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the pages of the documentation site, for Sphinx.
   usage: pages.py PROJECT FOLDER

The pages are the project's own Markdown files. They are copied, and only their links are changed: a
link to a file that has a page on the site leads to that page. A link to any other file of the project
leads to $EMBLA_SOURCE_URL, and is plain text if that is not set. A link to nothing is an error.

docs/index.md is the start page. Its headings and lists are also the contents at the side. If $EMBLA_PLAY_PAGE
is set, the site has a page of `embla play`, play.html, which docs/playground.md then shows."""
import glob
import json
import os
import re
import sys

import man_pages
import python_pages

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCED = re.compile(r"(^ *(?:```|~~~).*?^ *(?:```|~~~)[^\n]*$)", re.M | re.S)


def site_map(project):
    """The page of each file that has one: path in the project -> path on the site."""
    pages = {"README.md": "readme.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md",
             "CONTRIBUTING.md": "contributing.md", "CODE_OF_CONDUCT.md": "conduct.md",
             "src/README.md": "inside/rooms.md",
             "src/adding.md": "inside/adding.md", "src/paths.md": "inside/paths.md",
             "examples": "examples/index.md", "examples/README.md": "examples/index.md",
             "include": "api/index.md", "docs/decisions": "decisions/index.md", "docs/man": "verbs/index.md",
             "include/embla.hpp": "api/embla_hpp.md", "include/embla": "api/embla_hpp.md",
             "python/embla": "python-api.rst", "docs/python.ipynb": "notebook.md"}

    def add(pattern, name):
        for path in sorted(glob.glob(os.path.join(project, pattern))):
            stem = os.path.splitext(os.path.basename(path))[0]
            pages.setdefault(os.path.relpath(path, project), name % stem)

    add("docs/*.md", "%s.md")
    add("docs/decisions/*.md", "decisions/%s.md")
    add("examples/*.c", "examples/%s.md")
    add("examples/*.cpp", "examples/%s.md")
    add("include/*.h", "api/%s.md")
    for path in sorted(glob.glob(os.path.join(project, "docs/man/embla-*.1"))):
        pages["docs/man/" + os.path.basename(path)] = "verbs/%s.md" % os.path.basename(path)[6:-2]
    pages["docs/man/embla.1"] = "verbs/index.md"
    return pages


class Links:
    def __init__(self, project):
        self.project = project
        self.pages = site_map(project)
        self.source = os.environ.get("EMBLA_SOURCE_URL", "").rstrip("/")
        self.files = set()  # pictures and other files that pages show
        self.broken = []

    def target(self, origin, place, link, picture):
        """The new target of a link in the file `origin`, whose page is `place`; None for plain text."""
        if re.match(r"[a-z]+:|#", link):
            return link
        path, mark, anchor = link.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(origin), path))
        if not os.path.exists(os.path.join(self.project, path)):
            self.broken.append("%s: %s" % (origin, link))
            return None
        page = self.pages.get(path)
        if picture or path.endswith(".svg"):
            self.files.add(path)
            page = "pictures/" + os.path.basename(path)
        if page:
            return os.path.relpath(page, os.path.dirname(place) or ".") + mark + anchor
        return "%s/%s%s%s" % (self.source, path, mark, anchor) if self.source else None

    def rewrite(self, text, origin, place):
        def one(found):
            target = self.target(origin, place, found.group(3), found.group(1) == "!")
            return "%s[%s](%s)" % (found.group(1), found.group(2), target) if target else found.group(2)

        def html(found):
            return '%s="%s"' % (found.group(1), self.target(origin, place, found.group(2), True))

        pieces = FENCED.split(text)
        for i in range(0, len(pieces), 2):
            pieces[i] = LINK.sub(one, pieces[i])
            pieces[i] = re.sub(r'\b(src)="([^"]+)"', html, pieces[i])
        return "".join(pieces)


def with_page(text):
    """Puts the page of the demo, which the site may have, in the place of its mark."""
    shown = ('\n<p><a href="play.html">Open the page of the demo</a>, or try it here:</p>\n'
             '<iframe src="play.html" title="The page of the demo" loading="lazy" '
             'style="width: 100%; height: 720px; border: 1px solid var(--color-background-border)"></iframe>\n')
    return text.replace("<!--play-->\n", shown if os.environ.get("EMBLA_PLAY_PAGE") else "")


def toctree(pages, caption="", hidden=True):
    lines = ["```{toctree}"] + [":caption: " + caption] * bool(caption) + [":hidden:"] * hidden
    return "\n".join(lines + [":maxdepth: 1", ""] + [re.sub(r"\.(md|rst)$", "", p) for p in pages] + ["```", ""])


def contents(text):
    """The contents at the side: each `## heading` of the start page with the pages that its list names."""
    out = []
    for heading, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.M | re.S):
        pages = re.findall(r"^- \[(.*?)\]\((.*?)\.(?:md|rst)\)", body, re.M)
        if pages:
            out.append(toctree(["%s <%s>" % page for page in pages], caption=heading))
    return "\n".join(out)


def notebook(path):
    """A notebook as Markdown: its texts, its code and the results that it has stored."""
    out = []
    for cell in json.load(open(path, encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            out.append(source)
            continue
        out.append("```python\n%s\n```" % source)
        for result in cell.get("outputs", []):
            data = result.get("data", {})
            said = "".join(result.get("text", data.get("text/plain", "")))
            if "image/svg+xml" in data:
                svg = "".join(data["image/svg+xml"])
                out.append(svg[svg.index("<svg"):].strip().replace("\n\n", "\n"))
            elif said:
                out.append("```text\n%s\n```" % said.rstrip("\n"))
    return "\n\n".join(out) + "\n"


def example(project, path):
    """A page for an example: the source, and what it prints."""
    source = open(os.path.join(project, path), encoding="utf-8").read()
    name = os.path.basename(path)
    stem, kind = os.path.splitext(path)
    out = "# %s\n\n```%s\n%s```\n" % (name, kind[1:], source)
    printed = os.path.join(project, stem + ".out")
    if os.path.exists(printed):
        out += "\nIt prints:\n\n```text\n%s```\n" % open(printed, encoding="utf-8").read()
    return out


STABLE = ["embla", "embla_checkpoint", "embla_store", "embla_text"]
OTHERS = ["embla_lab", "embla_learn", "embla_train", "embla_wordvec", "embla_search", "embla_cluster"]


def main(project, folder):
    links = Links(project)
    out = {}

    def read(path):
        return open(os.path.join(project, path), encoding="utf-8").read()

    for path, place in links.pages.items():
        if path.endswith(".md"):
            out[place] = with_page(links.rewrite(read(path), path, place))
        elif path.endswith((".c", ".cpp")):
            out[place] = example(project, path)
    below = lambda where: sorted(os.path.basename(p) for p in set(links.pages.values())
                                 if p.startswith(where + "/") and not p.endswith("/index.md"))
    out["index.md"] += "\n" + contents(out["index.md"])
    out["examples/index.md"] += "\n" + toctree(below("examples"))
    out["decisions/index.md"] = "# Decisions\n\nWhat others will ask about: context, decision, consequences.\n\n" \
        + toctree(below("decisions"), hidden=False)
    out["notebook.md"] = notebook(os.path.join(project, "docs/python.ipynb"))
    out["python-api.rst"] = python_pages.page(project)
    out.update(man_pages.pages(project))
    if os.environ.get("EMBLA_DOXYGEN"):
        import headers
        out.update(headers.pages(project, STABLE, OTHERS))
    else:
        for name in STABLE + OTHERS:
            out["api/%s.md" % name] = "# %s.h\n\n```c\n%s```\n" % (name, read("include/%s.h" % name))
        out["api/index.md"] = "# C API\n\n" + toctree([n + ".md" for n in STABLE + OTHERS], hidden=False)
    if links.broken:
        print("links to nothing:\n  " + "\n  ".join(links.broken))
        return 1
    for place, text in out.items():
        path = os.path.join(folder, place)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "w", encoding="utf-8").write(text)
    os.makedirs(os.path.join(folder, "pictures"), exist_ok=True)
    for path in sorted(links.files):
        data = open(os.path.join(project, path), "rb").read()
        open(os.path.join(folder, "pictures", os.path.basename(path)), "wb").write(data)
    print("%d pages" % len(out))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
