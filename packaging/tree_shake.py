# SPDX-License-Identifier: Apache-2.0
"""Leaves out of a C file what a few functions do not need.

The text is cut into items: a function, a type, a variable, a directive. An item is kept if a kept
item mentions a name that it defines; it begins with the functions that are asked for. Nothing is
compiled: a name that only looks like one of ours keeps an item that is not needed, never the other
way round. Names of one source file (without the prefix embla_) count within that file only.
"""
import re

# The words of C, for this file and for amalgamate, which renames inside of directives too.
WORDS = r"""
    (?P<comment>/\*.*?\*/|//[^\n]*)%s
  | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  | (?P<name>[A-Za-z_]\w*)
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
  | (?P<space>\s+|\\\n)
  | (?P<other>->|.)"""
WORD = re.compile(WORDS % "", re.X | re.S)
TOKEN = re.compile(WORDS % r"""
  | (?P<directive>(?<![^\n])[ \t]*\#(?:/\*.*?\*/|\\\n|[^\n])*)""", re.X | re.S)
NAME = re.compile(r"[A-Za-z_]\w*")
USED = re.compile(r"(?<![\w.>])[A-Za-z_]\w*|(?<=[^-]>)[A-Za-z_]\w*")  # not a member of a struct
FILE = re.compile(r"/\* (?:====|----) (\S+\.[ch]) (?:====|----) \*/")  # written by amalgamate
SETS = ("", "_scalar", "_avx2", "_avx512")
OPEN, CONDITIONS = ("if", "ifdef", "ifndef"), ("if", "ifdef", "ifndef", "elif", "else", "endif")


class Item:
    def __init__(self, text, kind, defines=(), uses=()):
        self.text, self.kind, self.defines, self.uses = text, kind, set(defines), set(uses)


def bare(text):
    """The text without comments and strings."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', " ", text).strip()


def cut(text, macros):
    """The items of a text, each with the comments before it."""
    items, start, depth, first, body, last = [], 0, 0, None, False, ""
    found = [m for m in TOKEN.finditer(text) if m.lastgroup not in ("space", "comment")]
    for n, match in enumerate(found):
        kind, token, done = match.lastgroup, match.group(), False
        if kind == "directive":
            done = depth == 0 and first is None
        else:
            first = first or token
            if token in "([{":
                if token == "{" and depth == 0:
                    body = last == ")"
                depth += 1
            elif token in ")]}":
                depth -= 1
                following = found[n + 1].group() if n + 1 < len(found) else ""
                done = depth == 0 and (token == "}" and body or
                                       token == ")" and first in macros and following not in "{;")
            elif token == ";":
                done = depth == 0
            last = token
        if done:
            items.append(text[start:match.end()])
            start, first, body = match.end(), None, False
    return items + [text[start:]]


def declared(code):
    """Names that a declaration defines. Of a function, `code` ends with its parameters."""
    names, inside, found = set(), [], [m for m in TOKEN.finditer(code) if m.lastgroup != "space"]
    enum, called = re.search(r"\benum\b[^({;]*\{", code), False
    for n, match in enumerate(found):
        token = match.group()
        before = found[n - 1].group() if n > 0 else ""
        after = found[n + 1].group() if n + 1 < len(found) else ""
        if match.lastgroup == "other" and token in "([{":
            inside.append(token)
        elif match.lastgroup == "other" and token in ")]}" and inside:
            inside.pop()
        elif match.lastgroup == "name" and token != "__attribute__":
            if not inside:
                if after in (";", ",", "=", "[") or after == "(" and not called:
                    names.add(token)
                called |= after == "("
                if before in ("struct", "union", "enum") and after == "{":
                    names.add(token)
            elif inside == ["{"] and enum and before in ("{", ","):
                names.add(token)
            elif inside == ["("] and before == "*" and found[n - 2].group() == "(":
                names.add(token)  # a pointer to a function
    return names


def made(code, macro):
    """Names of functions that a call of a macro may define."""
    parameters, body = macro
    inner = code[code.index("(") + 1:code.rindex(")")]
    arguments = [a.strip() for a in re.split(r",(?![^()]*\))", inner)]
    for parameter, argument in zip(parameters, arguments):
        body = re.sub(rf"\b{re.escape(parameter)}\b", lambda _, a=argument: a, body)
    body = re.sub(r"\s*##\s*", "", body.replace("\\\n", " "))
    names = set(re.findall(r"\bstatic\b[^;{}()=]*?\b(\w+)\s*\(", body))
    return names | {a + s for a in arguments if NAME.fullmatch(a) for s in SETS}


def directive(text, code, bodies):
    word = re.match(r"#[ \t]*(\w+)[ \t]*(\w*)(?:\(([^)]*)\))?", code)
    if word[1] == "define":
        if word[3] is not None:
            bodies[word[2]] = ([p.strip() for p in word[3].split(",")], code[word.end():])
        return Item(text, "define", [word[2]], NAME.findall(code[word.end(2):]))
    return Item(text, word[1] if word[1] in CONDITIONS + ("undef",) else "directive",
                [word[2]] if word[1] == "undef" else ())


def item_of(text, bodies):
    code = bare(text)
    if not code:
        return Item(text, "blank")
    if code.startswith("#"):
        return directive(text, code, bodies)
    uses = USED.findall(code)
    if code.startswith(("_Static_assert", "static_assert")):
        return Item(text, "assert", (), uses)
    first = NAME.match(code)
    if first and first[0] in bodies and not code.endswith("}"):
        return Item(text, "macro", made(code, bodies[first[0]]), uses)
    body = re.search(r"\)\s*\{", code)
    if body and code.endswith("}"):
        code = code[:body.start() + 1] + ";"
    return Item(text, "code", declared(code), uses)


def items_of(text):
    """All items, with names that say which file they are of."""
    macros = set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(", text, re.M))
    items, bodies, file, tops = [], {}, "", set()
    for piece in cut(text, macros):
        item = item_of(piece, bodies)
        file = (FILE.findall(piece) or [file])[-1]

        def scoped(name):
            return name if name.startswith(("embla_", "EMBLA_", "XXH")) else f"{file} {name}"
        top = {f" {u}" for u in item.uses} & tops  # macros before the first file
        item.defines = {scoped(n) for n in item.defines}
        item.uses = {scoped(n) for n in item.uses} | top
        if item.kind != "macro":
            item.uses -= item.defines
        if item.kind == "define" and not file:
            tops |= item.defines
        items.append(item)
    return items


def reached(items, roots):
    """The needed names, and the numbers of the items that define them."""
    homes, need, kept = {}, set(), set()
    for n, item in enumerate(items):
        for name in item.defines if item.kind != "undef" else ():
            homes.setdefault(name, []).append(n)
    queue = list(roots) + [n for n in homes if n.startswith(" _")]  # _GNU_SOURCE
    while queue:
        name = queue.pop()
        if name in need:
            continue
        need.add(name)
        for n in homes.get(name, ()):
            if n not in kept:
                kept.add(n)
                queue += items[n].uses - need
    return need, kept, set(homes)


def without_guards(items):
    """Without the include guards of headers: each header is in the file once."""
    opened = []
    for n, item in enumerate(items):
        if item.kind in OPEN:
            opened.append(n)
        elif item.kind == "endif":
            first = opened.pop()
            if re.search(r"#ifndef \w+_H$", bare(items[first].text)):
                for k in (first, n):
                    items[k] = Item(re.sub(r"^#.*$", "", items[k].text, flags=re.M), "blank")
    return items


def without_empty(items):
    """Without files and conditions that nothing is left of."""
    files, file = {}, ""
    for item in items:
        file = (FILE.findall(item.text) or [file])[-1]
        files.setdefault(file, []).append(item)
    items = [i for file, inside in files.items() for i in inside
             if not file or any(k.kind in ("code", "define", "macro") for k in inside)]
    n = len(items) - 1
    while n >= 0:
        if items[n].kind in OPEN:
            end = n + 1
            while items[end].kind in ("else", "elif", "blank"):
                end += 1
            if items[end].kind == "endif":
                del items[n:end + 1]
        n -= 1
    return items


def shake(text, roots):
    """The part of a text that the functions `roots` need."""
    items = items_of(text)
    need, kept, known = reached(items, roots)
    left = [item for n, item in enumerate(items)
            if n in kept or item.kind in CONDITIONS + ("blank", "directive")
            or item.kind == "undef" and item.defines & need
            or item.kind == "assert" and all(u in need or u not in known for u in item.uses)]
    left = without_empty(without_guards(left))
    return re.sub(r"\n{3,}", "\n\n", "".join(item.text for item in left))
