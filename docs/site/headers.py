#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The public headers as documentation. Their comments are plain: the comment above a declaration and the
one behind a field describe it, and `/* ---- title ---- */` begins a section.

   headers.py FILE.h                      the header with doxygen's marks: doxygen's input filter
   headers.py --man FILE.h                a man page of section 3

A comment's text is paragraphs. Lines that begin with `- ` are a list. Lines that are indented by two or
more columns are a list of words with their meanings, if each begins with a word and two spaces; otherwise
they are printed as they are."""
import os
import re
import sys
import textwrap

COMMENT = re.compile(r"/\*.*?\*/", re.S)
SECTION = re.compile(r"/\* ---- (.*?) ----(.*)\*/", re.S)
NAME = re.compile(r"\b(embla_[a-z0-9_]+|EMBLA_[A-Z0-9_]+|NULL)\b(?!\.[ch]\b)")
TERM = re.compile(r"^ +(\w[\w ]*?)(?:  +)(\S.*)$")


def lines_of(comment):
    """The lines of a comment without its marks."""
    body = comment[2:-2]
    lines = [re.sub(r"^\s*\* ?", "", line) if i else line.strip() for i, line in enumerate(body.split("\n"))]
    return [line.rstrip() for line in lines]


def parts(lines):
    """The text of a comment: ("text", line), ("list", [item]), ("words", [(word, meaning)]) or ("code", [line])."""
    out = []
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")):
        run, kind = [], None
        rows = paragraph.split("\n")
        for row in rows + [None]:
            now = None if row is None else \
                "list" if re.match(r" *- \S", row) or (kind == "list" and row.startswith("  ")) else \
                "code" if row.startswith("  ") else "text"
            if now != kind and run:
                out.append(finish(kind, run))
                run = []
            kind = now
            if row is not None:
                run.append(row)
    return out


def finish(kind, run):
    if kind == "text":
        return kind, " ".join(row.strip() for row in run)
    if kind == "list":
        items = []
        for row in run:
            if re.match(r" *- \S", row):
                items.append(row.strip()[2:])
            else:
                items[-1] += " " + row.strip()
        return kind, items
    edge = min(len(row) - len(row.lstrip()) for row in run)
    words = []
    for row in run:
        found = TERM.match(row) if len(row) - len(row.lstrip()) == edge else None
        if found:
            words.append([found.group(1), found.group(2)])
        elif words and len(row) - len(row.lstrip()) > edge + 4:
            words[-1][1] += " " + row.strip()
        else:
            return "code", [row[edge:] for row in run]
    if all(re.match(r"[A-Za-z]", word[1]) for word in words) and not any("->" in " ".join(word) for word in words):
        return "words", words
    return "code", [row[edge:] for row in run]


def opening(text):
    """What a header is, the first sentence of its first comment, and the other lines."""
    lines = lines_of(text) + [""]
    end = lines.index("")
    first = " ".join(line.strip() for line in lines[:end]).split(" - ", 1)[1]
    about, _, rest = re.sub(r"\.(\s+(?=[A-Z])|$)", "\f", first, count=1).partition("\f")
    return about, [rest] * bool(rest) + lines[end:]


# ---- doxygen ----

def doxygen_text(text):
    text = re.sub(r"([\\@&$#<>%\"])", r"\\\1", text).replace("--", r"\--")
    text = re.sub(r"`([^`]+)`", r"<tt>\1</tt>", text)
    pieces = re.split(r"(<tt>.*?</tt>)", text)
    return "".join(p if p.startswith("<tt>") else NAME.sub(r"<tt>\1</tt>", p) for p in pieces)


def listed(lines, text, word, code):
    """A comment whose lists have dashes, as doxygen and Markdown take them. text writes a text, word is
    the form of a word that is explained, code writes lines as they are."""
    out = []
    for kind, body in parts(lines):
        if kind == "text":
            out.append(text(body))
        elif kind == "list":
            out.append("\n".join("- " + text(item) for item in body))
        elif kind == "words":
            out.append("\n".join("- %s: %s" % (word % text(w), text(m)) for w, m in body))
        else:
            out.append(code(body))
    return "\n\n".join(out)


def doxygen_comment(lines):
    return listed(lines, doxygen_text, "<b>%s</b>", lambda rows: "@verbatim\n%s\n@endverbatim" % "\n".join(rows))


def slug(title):
    return re.sub(r"[^a-z0-9]+", "_", re.split(r"[:,(]", title.lower())[0]).strip("_")


def scan(source):
    """The pieces of a header after its licence line: ("top" | "section" | "loose" | "above" | "behind" | "code", text).
    A loose comment belongs to its section: an empty line follows it."""
    at, first = 0, True
    for found in COMMENT.finditer(source):
        text = found.group()
        if found.start() > at:
            yield "code", source[at:found.start()]
        at = found.end()
        if "SPDX-License" in text:
            continue
        begins = source[:found.start()].rpartition("\n")[2].strip() == ""
        section = SECTION.fullmatch(text)
        if section:
            yield "section", " ".join(lines_of("/*" + section.group(1) + "*/"))
            if section.group(2).strip(" *\n"):
                yield "loose", "/*" + section.group(2) + "*/"
        elif first:
            yield "top", text
            first = False
        elif begins and source[at:at + 2] == "\n\n":
            yield "loose", text
        else:
            yield "above" if begins else "behind", text
    yield "code", source[at:]


def group(name, title):
    return "%s__%s" % (name, slug(title))


def plain_code(code):
    """Code without the marks of the compiler."""
    return re.sub(r"\b(EMBLA_API|EMBLA_CHECKED)\s+", "", code)


def for_doxygen(source, name):
    source = re.sub(r"^( +)((?:const )?\w+) ((?:\*?\w+, )+\*?\w+);( /\*.*?\*/)$", one_each, source, flags=re.M | re.S)
    out, opened = ["/** @file */\n"], False
    for kind, text in scan(source):
        if kind == "code":
            text = plain_code(re.sub(r"^#define EMBLA_(API|CHECKED).*\n", "", text, flags=re.M))
            end = re.search(r"^#ifdef __cplusplus\n\}", text, re.M)
            if end:
                text = text[:end.start()] + "/** @} */\n" + text[end.start():]
            out.append(text)
        elif kind == "section":
            if opened:
                out.append("/** @} */\n")
            out.append("/** @defgroup %s %s\n */\n/** @addtogroup %s\n @{ */\n" %
                       (group(name, text), doxygen_text(text), group(name, text)))
            opened = group(name, text)
        elif kind == "top":
            out.append("/** @defgroup %s_h %s.h\n @{ */" % (name, name))
            opened = name + "_h"
        elif kind == "loose":
            pass  # page() writes it: breathe shows the members of a group only
        else:
            out.append("/**%s %s\n*/" % ("<" * (kind == "behind"), doxygen_comment(lines_of(text))))
    return "".join(out)


def one_each(found):
    """One declaration for each name, so that the comment describes all: `int a, b; /* .. */`."""
    space, word, names, comment = found.groups()
    if word in ("return", "typedef") or "/*" in names:
        return found.group()
    return "\n".join("%s%s %s;%s" % (space, word, n, comment) for n in names.split(", "))


# ---- man pages ----

def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "")
    return "\n".join("\\&" + row if row[:1] == "." else row for row in text.split("\n"))


def roff_name(text):
    text = re.sub(r"\b(embla_[a-z0-9_]+)\b", r"\\fB\1\\fR", roff(text))
    return filled(text)


def filled(text):
    """Lines of at most 78 bytes, none of which is a request."""
    rows = textwrap.wrap(text, 78, break_long_words=False, break_on_hyphens=False)
    return "\n".join("\\&" + row if row[:1] == "." else row for row in rows)


def man_comment(lines):
    out = []
    for kind, body in parts(lines):
        if kind == "text":
            out.append(".PP\n" + roff_name(body))
        elif kind == "list":
            out += [".IP \\(bu 2\n" + roff_name(item) for item in body]
        elif kind == "words":
            out += [".TP\n.B %s\n%s" % (roff(w), roff_name(m)) for w, m in body]
        else:
            out.append(".PP\n.nf\n%s\n.fi" % roff("\n".join(body)))
    return "\n".join(out) + "\n"


def man_code(code):
    """Declarations, without the lines of the preprocessor but constants."""
    code = re.sub(r"^#(?!define EMBLA_(?!API|CHECKED|H\b|\w+_H$)).*\n", "", code, flags=re.M)
    code = re.sub(r'^(extern "C" \{|\})\n', "", code, flags=re.M)
    return plain_code(code).strip("\n")


LIBRARY = {"embla": "embla", "embla_checkpoint": "embla", "embla_store": "embla", "embla_text": "embla_text",
           "embla_cluster": "embla_cluster"}


def man_page(source, name, version, date):
    out = ['.\\" SPDX-License' '-Identifier: Apache-2.0\n.TH %s 3 "%s" "Embla %s" "Library Functions"\n' %
           (name.upper(), date, version)]
    comment, code = "", ""

    def flush():
        nonlocal comment, code
        text = man_code(code)
        if text.strip():
            out.append(".PP\n.nf\n%s\n.fi\n" % roff(text))
            if comment:
                out.append(".RS 4\n" + comment + ".RE\n")
        elif comment:
            out.append(comment)
        comment = code = ""

    for kind, text in scan(source):
        if kind == "top":
            about, lines = opening(text)
            library = LIBRARY.get(name, "embla_lab")
            out.append(".SH NAME\n%s \\-\n%s\n.SH SYNOPSIS\n.nf\n#include <%s.h>\n\ncc ... $(pkg\\-config \\-\\-cflags \\-\\-libs %s)\n.fi\n"
                       ".SH DESCRIPTION\n%s" % (name, filled(roff(about)), name, library, man_comment(lines)))
        elif kind == "section":
            flush()
            out.append(".SH %s\n" % roff(text.upper()))
        elif kind == "loose":
            flush()
            comment = man_comment(lines_of(text))
            flush()
        elif kind == "above" and not inside(code):
            flush()
            comment = man_comment(lines_of(text))
        elif kind == "code":
            code += text
        else:
            code += text
    flush()
    out.append(".SH SEE ALSO\n.BR embla (1)")
    out.append("".join(",\n.BR %s (3)" % other for other in HEADERS if other != name) + "\n")
    text = re.sub(r"^(\.SH .*|\.RS 4)\n\.PP$", r"\1", "".join(out), flags=re.M)  # no empty paragraph
    return re.sub(r"\n\n+", "\n", re.sub(r"(?s)(?<=\.nf\n)(.*?)(?=\n\.fi)", keep, text)).replace("\f", "")


def keep(found):
    """An empty line of code stays one: a form feed keeps it from the removal of the others."""
    return re.sub(r"\n(?=\n)", "\n\f", found.group(1))


def inside(code):
    """Whether code is in the middle of a declaration."""
    code = COMMENT.sub("", code)
    code = re.sub(r"^#.*$|^extern \"C\" \{$", "", code, flags=re.M)
    return code.count("{") > code.count("}")


HEADERS = ["embla", "embla_checkpoint", "embla_store", "embla_text", "embla_lab", "embla_learn", "embla_train",
           "embla_wordvec", "embla_search", "embla_cluster"]


# ---- pages of the site ----

def title(source):
    top = next(text for kind, text in scan(source) if kind == "top")
    return opening(top)[0]


def markdown_text(text):
    pieces = re.split(r"(`[^`]+`)", text)
    for i in range(0, len(pieces), 2):
        pieces[i] = re.sub(r"([\\*_\[\]<>|#])", r"\\\1", NAME.sub(r"\f\1\f", pieces[i]))
        pieces[i] = re.sub(r"\f(.*?)\f", lambda m: "`%s`" % m.group(1).replace("\\", ""), pieces[i])
        pieces[i] = re.sub(r"\bdocs/([a-z-]+\.md)", r"[\1](../\1)", pieces[i])
        pieces[i] = re.sub(r"\bexamples/([a-z_\\]+)\.c\b", lambda m: "[%s.c](../examples/%s.md)" %
                           (m.group(1), m.group(1).replace("\\", "")), pieces[i])
    return "".join(pieces)


def markdown_code(rows):
    language = "c" if any(row.endswith(";") for row in rows) else "text"
    return "```%s\n%s\n```" % (language, "\n".join(rows))


def markdown_comment(lines):
    return listed(lines, markdown_text, "**%s**", markdown_code) + "\n\n"


def page(source, name):
    out, members = "", name + "_h"

    def block():
        return "```{doxygengroup} %s\n:content-only:\n```\n" % members

    for kind, text in scan(source):
        if kind == "top":
            out += "# %s.h\n\n%s.\n\n%s" % (name, title(source)[:1].upper() + title(source)[1:],
                                           markdown_comment(opening(text)[1]))
        elif kind == "loose":
            out += markdown_comment(lines_of(text))
        elif kind == "section":
            out += "%s\n## %s\n\n" % (block(), text[:1].upper() + text[1:])
            members = group(name, text)
    return out + block()


def pages(project, stable, others):
    """The pages of the C API: one for each header, and a list of them."""
    out, lists = {}, ""
    for heading, names in (("Stable", stable), ("May change", others)):
        lists += "\n## %s\n\n" % heading
        for name in names:
            source = open(os.path.join(project, "include", name + ".h"), encoding="utf-8").read()
            out["api/%s.md" % name] = page(source, name)
            lists += "- [%s.h](%s.md): %s\n" % (name, name, title(source))
    wrapper = open(os.path.join(project, "include/embla.hpp"), encoding="utf-8").read()
    out["api/embla_hpp.md"] = page(wrapper, "embla_hpp").replace("# embla_hpp.h", "# embla.hpp").split(
        "```{doxygengroup}")[0]
    for part in re.findall(r'"embla/(\w+\.hpp)"', wrapper):
        source = open(os.path.join(project, "include/embla", part), encoding="utf-8").read()
        out["api/embla_hpp.md"] += "## embla/%s\n\n```cpp\n%s```\n\n" % (part, source)
    lists += "\n## C++\n\n- [embla.hpp](embla_hpp.md): %s\n" % title(wrapper)
    out["api/index.md"] = """# C API

Every public function, by header. The pages are made from the headers themselves, and each is also a man page: `man 3 embla_store`. [The examples](../examples/index.md) show how the functions are used.

The stable headers do not change within a minor version. The others may change.
""" + lists + "\n```{toctree}\n:hidden:\n\n%s\n```\n" % "\n".join(stable + others + ["embla_hpp"])
    return out


def main(arguments):
    man = arguments[0] == "--man"
    path = arguments[1] if man else arguments[0]
    source = open(path, encoding="utf-8").read()
    name = os.path.splitext(os.path.basename(path))[0]
    if not man:
        sys.stdout.write(for_doxygen(source, name))
        return
    version = ".".join(re.findall(r"^#define EMBLA_VERSION_\w+ (\d+)$", open(os.path.join(
        os.path.dirname(path), "embla.h"), encoding="utf-8").read(), re.M))
    page1 = open(os.path.join(os.path.dirname(path), "..", "docs/man/embla.1"), encoding="utf-8").read()
    date = re.search(r'^\.TH EMBLA 1 "(.*?)"', page1, re.M).group(1)  # one date for all man pages
    sys.stdout.write(man_page(source, name, version, date))


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")
    main(sys.argv[1:])
