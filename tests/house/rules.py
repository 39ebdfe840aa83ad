# SPDX-License-Identifier: Apache-2.0
"""The codes at the end of messages, such as (C15): docs/formats.md explains them, and
cli/core/rules_list.c has the same text for `embla help CODE`.

    rules.py PROJECT            checks that both agree and that every code in src/ is among them
    rules.py PROJECT --update   writes rules_list.c
"""
import glob
import re
import sys
import textwrap

HEAD = '''/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of docs/formats.md. Written by tests/house/rules.py PROJECT --update. */
#include "core/rules.h"

/* clang-format off */
const cli_rule cli_rules[] = {
'''
TAIL = '''    {NULL, NULL, NULL, false}};
/* clang-format on */
'''
# what a code belongs to, by its letters
OF = {"C": "every reader", "S": "safetensors", "K": "packs", "G": "GGUF", "N": "npy",
      "W": "word2vec and GloVe", "F": "fastText", "L": "llm.c", "LL": "llama2.c",
      "M": "the mapping of tokens to rows (Model2Vec)", "T": "vocabularies",
      "V": "text vocabularies", "P": "pickles and archives", "D": "written files"}
DTYPES = re.compile(r"((BF|F|I|U|V)(2|4|8|16|32|64)|C64)$")


def plain(text):
    """Markdown as text: no links, no marks, and capitals and a full stop as in a sentence."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "").replace("\\|", "|")
    text = re.sub(r"\*(limits?)\*", r"\1 of Embla", text).replace("(limit of", "(a limit of")
    return text[:1].upper() + text[1:] + "."


def documented(project):
    text = open(project + "/docs/formats.md", encoding="utf-8").read()
    lenient = set(re.findall(r"^\| ([A-Z]+\d+) \|", text[text.index("## Lenient"):text.index("## Rules")], re.M))
    rules = re.findall(r"^\| ([A-Z]{1,2}\d*) \| (.*) \| [^|]* \|$", text[text.index("## Rules"):], re.M)
    return [(code, OF[code.rstrip("0123456789")], plain(what), code in lenient) for code, what in rules]


def as_c(rules):
    out = HEAD
    for code, of, text, lenient in rules:
        lines = textwrap.wrap(text.replace("\\", "\\\\").replace('"', '\\"'), 85, break_long_words=False,
                              drop_whitespace=False, break_on_hyphens=False)
        out += '    {"%s", "%s",\n' % (code, of)
        out += "\n".join('     "%s"' % line for line in lines) + ", %s},\n" % str(lenient).lower()
    return out + TAIL


def used(project):
    """The codes in strings of the sources: "(C15)" in a message, or "T1" as an argument of one."""
    found = {}
    for path in glob.glob(project + "/src/**/*.[ch]", recursive=True) + glob.glob(project + "/cli/**/*.[ch]", recursive=True):
        if path.endswith(("rules.c", "rules.h", "rules_list.c")):
            continue
        text = re.sub(r"/\*.*?\*/", "", open(path, encoding="utf-8").read(), flags=re.S)
        for string in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text):
            codes = re.findall(r"\(([A-Z]{1,2}\d{1,2}|P)\)", string)
            if re.fullmatch(r"[A-Z]{1,2}\d{1,2}", string) and not DTYPES.match(string) and "/src/" in path:
                codes.append(string)
            for code in codes:
                found.setdefault(code, path[len(project) + 1:])
    return found


def main():
    project, rules = sys.argv[1], documented(sys.argv[1])
    path = project + "/cli/core/rules_list.c"
    if sys.argv[2:] == ["--update"]:
        open(path, "w", encoding="utf-8").write(as_c(rules))
        return
    known, codes = {rule[0] for rule in rules}, used(project)
    bad = ["%s has the code %s, which docs/formats.md does not explain" % (file, code)
           for code, file in sorted(codes.items()) if code not in known]
    if open(path, encoding="utf-8").read() != as_c(rules):
        bad.append("cli/core/rules_list.c differs from docs/formats.md; run tests/house/rules.py . --update")
    if len(codes) < 60 or len(known) < 80:
        bad.append("only %d codes in the sources and %d rules were found" % (len(codes), len(known)))
    if bad:
        sys.exit("\n".join(bad))


main()
