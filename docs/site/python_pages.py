# SPDX-License-Identifier: Apache-2.0
"""The page of the Python API, from the sources of the package: embla/*.py, the stub _embla.pyi, and the
help texts in python/src/*.c. The package is not imported, so it need not be built."""
import ast
import glob
import inspect
import os
import re
import textwrap

# Where the help text of a class of the C module is.
FILES = {"Table": "table", "Checkpoint": "checkpoint", "Vocab": "vocab", "Tokenizer": "tokenizer",
         "Detokenizer": "tokenizer", "Encoder": "encoder", "Index": "search", "Store": "store",
         "Ticket": "tickets", "Tickets": "tickets", "Ngram": "ngram", "Scatter": "learn", "Optim": "learn",
         "Array": "array"}
GROUPS = [
    ("Open and look up", ["open", "Table", "Checkpoint", "Vocab", "Array", "pool", "sinusoid"]),
    ("What rows mean", ["Hit", "Hits", "Comparison", "Points", "Account"]),
    ("Check", ["doctor", "Diagnosis", "Finding"]),
    ("Text and search", ["Tokenizer", "Detokenizer", "Encoder", "Index", "Found"]),
    ("Learn", ["train", "words", "Run", "Model", "Report", "Prediction", "Predictions", "Film", "play", "Page",
               "logits", "loss", "Scatter", "Optim"]),
    ("Giant tables", ["Ngram", "Store", "Ticket", "Tickets"]),
    ("Costs and facts", ["cost", "cost_presets", "dtypes", "facts"]),
    ("Errors", ["Error", "ArgumentError", "BusyError", "FileError", "FormatError", "MissingFileError",
                "NotFoundError", "OutOfMemoryError", "RangeError", "ShapeError", "StoppedError",
                "UnsupportedError"]),
]
EXTRAS = ["gensim", "rag", "sklearn", "torch"]


def c_texts(project):
    """Help texts of the C module: (file, name) -> text."""
    found = {}
    for path in glob.glob(os.path.join(project, "python/src/*.c")):
        source = open(path, encoding="utf-8").read()
        for run in re.finditer(r'"(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*', source):
            text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', run.group()))
            text = text.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
            head = re.match(r"(\w+)\(.*?\)\n--\n\n(.*)", text, re.S)
            if head:
                found[(os.path.basename(path)[:-2], head.group(1))] = head.group(2)
            else:  # {"name", function, flags, "text"}: a text without its signature
                name = re.search(r'\{"(\w+)",[^"]*$', source[:run.start()])
                if name and text:
                    found.setdefault((os.path.basename(path)[:-2], name.group(1)), text)
    return found


class Package:
    def __init__(self, project):
        self.project = project
        self.c = c_texts(project)
        self.modules = {}
        self.where = {}  # name -> the nodes that define it, the most public first
        for path in sorted(glob.glob(os.path.join(project, "python/embla/*.py"))):
            self.read(path)
        self.stub = {}
        for node in self.parse("python/embla/_embla.pyi").body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                self.stub.setdefault(node.name, []).append(node)
        self.all = next(ast.literal_eval(n.value) for n in self.modules["__init__"].body
                        if isinstance(n, ast.Assign) and n.targets[0].id == "__all__")

    def parse(self, path):
        return ast.parse(open(os.path.join(self.project, path), encoding="utf-8").read())

    def read(self, path):
        tree = self.parse(path)
        name = os.path.basename(path)[:-3]
        self.modules[name] = tree
        if name in EXTRAS:
            return
        for node in tree.body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                self.where.setdefault(node.name, []).append(node)

    def classes(self, name):
        """The definitions of a class: its own, those of its private bases, and the stub's."""
        own = [n for n in self.where.get(name, []) if isinstance(n, ast.ClassDef)]
        out = list(own)
        for node in own:
            for base in (ast.unparse(b).split(".")[-1] for b in node.bases):
                if base in self.where and base not in self.all and base != name:
                    out += [n for n in self.classes(base) if n not in out]
        return out + [n for n in self.stub.get(name, []) if isinstance(n, ast.ClassDef) and n not in out]

    def text(self, node, name, owner=None):
        """The help text of a definition."""
        said = ast.get_docstring(node)
        if said:
            return said
        if owner:
            return self.c.get((FILES.get(owner, ""), name), "")
        return next((text for (_, other), text in sorted(self.c.items()) if other == name), "")


def signature(node, skip_first):
    """The parameters and the result as they are written."""
    arguments = ast.unparse(node.args)
    if skip_first:
        arguments = re.sub(r"^(self|cls)(, /)?(, )?", "", arguments)
    arguments = arguments.replace("_embla.", "")
    result = " -> " + ast.unparse(node.returns).replace("_embla.", "") if node.returns else ""
    return "(%s)%s" % (arguments, result)


def directive(kind, names, text, options=(), depth=0):
    out = [".. py:%s:: %s" % (kind, names[0])]
    out += [" " * (len(kind) + 9) + name for name in names[1:]]
    out += ["   :%s:" % option for option in options]
    body = "\n".join(out) + "\n\n" + textwrap.indent(text.strip(), "   ") + "\n"
    return textwrap.indent(body, "   " * depth) + "\n"


def decorated(node, word):
    return any(word == ast.unparse(d).split(".")[-1] for d in node.decorator_list)


def members(nodes):
    """name -> definitions of a class, over its own node and that of the stub."""
    out = {}
    for source in nodes:
        here = {}
        for node in source.body:
            if isinstance(node, ast.FunctionDef):
                here.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                here.setdefault(node.target.id, []).append(node)
        for name, found in here.items():
            out.setdefault(name, found)
    return out


def of_class(package, name, nodes):
    found = members(nodes)
    make = found.get("__init__") or found.get("__new__")
    text = package.text(nodes[0], name) or (package.text(nodes[-1], name) if len(nodes) > 1 else "")
    bases = [ast.unparse(b) for b in nodes[0].bases]
    heads = [name + re.sub(r" -> .*", "", signature(m, True)) for m in make[:1]] if make else [name]
    out = directive("exception" if any(b.endswith(("Error", "Exception")) for b in bases) else "class", heads, text)
    for member, defined in found.items():
        if member.startswith("_"):
            continue
        first = defined[0]
        if isinstance(first, ast.AnnAssign):
            out += directive("attribute", [member], "", ["type: " + ast.unparse(first.annotation)], 1).replace(
                ":type: %s:" % ast.unparse(first.annotation), ":type: %s" % ast.unparse(first.annotation))
            continue
        said = next((t for t in (package.text(d, member, name) for d in defined) if t), "")
        if decorated(first, "property"):
            kind = ast.unparse(first.returns) if first.returns else "Any"
            out += directive("property", [member], said, ["type: " + kind], 1).replace(
                ":type: %s:" % kind, ":type: %s" % kind)
            continue
        shown = [d for d in defined if decorated(d, "overload")] or defined
        options = ["classmethod"] if decorated(first, "classmethod") else \
            ["staticmethod"] if decorated(first, "staticmethod") else []
        out += directive("method", [member + signature(d, not decorated(d, "staticmethod")) for d in shown],
                         said, options, 1)
    return out


def page(project):
    package = Package(project)
    listed = [name for _, names in GROUPS for name in names]
    missing = sorted(set(package.all) ^ set(listed))
    if missing:
        raise SystemExit("python_pages.py: GROUPS and __all__ differ in: " + " ".join(missing))
    out = ["Python API", "==========", "",
           "Every name of the package ``embla``. :doc:`python` is the tour with examples.", "",
           ".. py:module:: embla", ""]
    for heading, names in GROUPS:
        out += [heading, "-" * len(heading), ""]
        for name in names:
            nodes = package.where.get(name, []) + package.stub.get(name, [])
            if isinstance(nodes[0], ast.ClassDef):
                out.append(of_class(package, name, package.classes(name)))
            else:
                functions = [n for n in nodes if isinstance(n, ast.FunctionDef)]
                shown = [f for f in functions if decorated(f, "overload")] or functions[:1]
                said = next((t for t in (package.text(f, name) for f in functions) if t), "")
                out.append(directive("function", [name + signature(f, False) for f in shown], inspect.cleandoc(said)))
    out += ["Beside other packages", "---------------------", ""]
    for name in EXTRAS:
        tree = package.modules[name]
        out.append(".. py:module:: embla.%s\n\n%s\n" % (name, ast.get_docstring(tree) or ""))
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                out.append(of_class(package, node.name, [node]))
            elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                out.append(directive("function", [node.name + signature(node, False)], ast.get_docstring(node) or ""))
    return "\n".join(out)
