# SPDX-License-Identifier: Apache-2.0
"""The pages of the verbs, from the man pages that `embla help VERB --man` has printed into docs/man. They
have few requests: SH, SS, P, br, TP, B, BR, nf and fi."""
import glob
import os
import re


def plain(text):
    """A line of roff as Markdown."""
    text = re.sub(r"\\f[BIRP]", "", text)
    text = text.replace("\\-", "-").replace("\\(aq", "'").replace("\\&", "").replace("\\e", "\\")
    return text


def safe(text):
    """Text whose characters are no marks of Markdown. Options and file names keep theirs as code."""
    text = re.sub(r"([\\*_`\[\]<>|])", r"\\\1", text)
    return re.sub(r"(?<![\w`-])(--[a-z][a-z-]*(?:=\w+)?)", r"`\1`", text)


def markdown(roff):
    """The sections of a man page as Markdown; the name and the synopsis become the title and a block."""
    out, mode, term, following = [], "text", None, False  # following: the line before was text too
    for line in roff.split("\n"):
        request, _, rest = line.partition(" ")
        joined, following = following, bool(line) and not line.startswith(".")
        rest = plain(rest).strip('"')
        if line.startswith('.\\"') or request == ".TH":
            continue
        if request == ".SH":
            if mode == "SYNOPSIS":
                out.append("```")
            mode = rest
            if rest not in ("NAME", "SYNOPSIS"):
                out.append("\n## %s\n" % rest.capitalize())
            elif rest == "SYNOPSIS":
                out.append("\n```text")
            continue
        if mode == "NAME":
            if joined:
                out[-1] += " " + plain(line)
            elif line:
                out.append(plain(line))
            continue
        if mode == "SYNOPSIS":
            if line:  # .RI [ name ]
                said = re.sub(r"\[ (.*) \]", r"[\1]", re.sub(r"^\.[A-Z]+ ", "", plain(line)))
                out[-1] += ("\n" if out[-1].endswith("text") else " ") + said
            continue
        if request == ".nf":
            mode = "code"
            out.append("\n```sh")
        elif request == ".fi":
            mode = "text"
            out.append("```\n")
        elif mode == "code":
            out.append(plain(line))
        elif request in (".P", ".PP"):
            out.append("")
        elif request == ".br":
            out.append("\\" if out[-1] and not out[-1].startswith("- ") else "")
        elif request == ".TP":
            term = True
        elif request in (".B", ".BR") and term:
            term = rest
            out.append("\n- `%s`" % rest)
        elif request == ".SS":
            out.append("\n### %s\n" % (rest[:1].upper() + rest[1:]))
        elif request == ".BR":  # a reference to another page
            out.append("- `%s`" % rest.rstrip(","))
        elif joined:
            out[-1] += " " + safe(plain(line))
        elif term and line:
            out[-1] += ": " + safe(plain(line))
            term = None
        else:
            text = plain(line)
            out.append("- " + safe(text[2:]) if text.startswith("- ") else safe(text))
    name, _, about = out[0].partition(" - ")
    out[0] = "# %s\n\n%s." % (name.replace("embla-", "embla ", 1), about[:1].upper() + about[1:])
    text = "\n".join(out)
    text = re.sub(r"\n\\\n", "\\\\\n", text)  # a line break at the end of its line
    text = re.sub(r"\\\n- ", "\n\n- ", text)
    text = re.sub(r"^(- .*)\n\n(?=- )", r"\1\n", text, flags=re.M)
    text = re.sub(r"^- `embla-([a-z-]+) \(1\)`", r"- [embla \1](\1.md)", text, flags=re.M)
    text = re.sub(r"^- `embla \(1\)`", "- [the program](index.md)", text, flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def pages(project):
    out, verbs = {}, []
    for path in sorted(glob.glob(os.path.join(project, "docs/man/embla-*.1"))):
        name = os.path.basename(path)[len("embla-"):-2]
        out["verbs/%s.md" % name] = markdown(open(path, encoding="utf-8").read())
        verbs.append(name)
    whole = os.path.join(project, "docs/man/embla.1")
    text = markdown(open(whole, encoding="utf-8").read())
    text = re.sub(r"^# embla$", "# The program and its verbs", text, flags=re.M)
    out["verbs/index.md"] = text
    if verbs:
        out["verbs/index.md"] += "\n```{toctree}\n:hidden:\n\n%s\n```\n" % "\n".join(verbs)
    return out
