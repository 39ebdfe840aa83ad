# SPDX-License-Identifier: Apache-2.0
"""Sphinx extension: a name of the C library in `code` becomes a link to its description."""
import re

from docutils import nodes
from sphinx import addnodes
from sphinx.domains.c import CDomain
from sphinx.util.nodes import make_refnode

NAME = re.compile(r"(embla_[a-z0-9_]+|EMBLA_[A-Z0-9_]+)(\(\))?$")
NOT_IN = (nodes.reference, nodes.title, addnodes.desc_signature)


def described(env):
    """name -> (page, anchor, kind). A value of an enum is found by its name alone."""
    found = {}
    for name, _, kind, page, anchor, _ in env.get_domain("c").get_objects():
        found.setdefault(name.rpartition(".")[2] if kind == "enumerator" else name, (page, anchor, kind))
    return found


def link_names(app, doctree, page):
    env = app.builder.env
    if not hasattr(env, "embla_names"):
        env.embla_names = described(env)
    for literal in list(doctree.findall(nodes.literal)):
        found = NAME.match(literal.astext())
        target = found and env.embla_names.get(found.group(1))
        inside = literal.parent
        while inside is not None and not isinstance(inside, NOT_IN):
            inside = inside.parent
        if target and inside is None:
            literal.replace_self(make_refnode(app.builder, page, target[0], target[1], literal.deepcopy(),
                                              found.group(1)))


class Names(CDomain):
    """The C domain without the parameters of functions: nobody searches for `count`."""

    def get_objects(self):
        return (entry for entry in super().get_objects() if entry[2] != "functionParam")


def setup(app):
    app.add_domain(Names, override=True)
    app.connect("doctree-resolved", link_names)
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
