#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every public function has a user: the program (cli/), the Python module (python/src/) or an
example (examples/). Tests and benchmarks are not users. tests/house/unused.txt lists the exceptions:
a name, a space and the reason on each line, in the order of the names.

    unused.py PROJECT

Comments and strings are no uses. A listed function that has a user by now, or that no longer
exists, is a failure too.
"""
import glob
import os
import re
import sys

USERS = ("cli", "python/src", "examples")
LIST = "tests/house/unused.txt"
# what may contain a name without using it: comments, strings and characters
TEXT = re.compile(r'/\*.*?\*/|//(?:\\\n|[^\n])*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code(path):
    with open(path, encoding="utf-8") as file:
        return TEXT.sub(" ", file.read())


def public(project):
    """The public functions, each with the header that declares it."""
    found = {}
    for path in sorted(glob.glob(project + "/include/*.h")):
        for name in re.findall(r"\bEMBLA_API\b[^;{]*?\b(embla_\w+)\s*\(", code(path)):
            found[name] = path[len(project) + 1:]
    return found


def used(project):
    """The names that users have in their code, each with a file that has it."""
    found, empty = {}, []
    for folder in USERS:
        paths = [p for end in "ch" for p in glob.glob("%s/%s/**/*.%s" % (project, folder, end), recursive=True)]
        if not paths:
            empty.append("no sources were found in %s; correct USERS in tests/house/unused.py" % folder)
        for path in sorted(paths):
            for name in re.findall(r"\bembla_\w+", code(path)):
                found.setdefault(name, path[len(project) + 1:])
    return found, empty


def listed(project):
    """The exceptions, each with its reason, and what is wrong with the list. No list means none."""
    reasons, bad, last = {}, [], ""
    if not os.path.exists(project + "/" + LIST):
        return reasons, bad
    with open(project + "/" + LIST, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            name, _, reason = line.strip().partition(" ")
            if not name or name.startswith("#"):
                continue
            if not reason.strip():
                bad.append("%s:%d: %s has no reason" % (LIST, number, name))
            if name <= last:
                bad.append("%s:%d: %s comes after %s; sort the names, each once" % (LIST, number, name, last))
            reasons[name], last = reason, name
    return reasons, bad


def main():
    project = sys.argv[1].rstrip("/")
    functions = public(project)
    users, bad = used(project)
    reasons, wrong = listed(project)
    bad += wrong
    for name, header in sorted(functions.items()):
        if name not in users and name not in reasons:
            bad.append("%s (%s) has no user in the program, the Python module or the examples; use it, "
                       "remove it, or give the reason in %s" % (name, header, LIST))
    for name in sorted(reasons):
        if name not in functions:
            bad.append("%s is in %s, but no header declares it; remove the line" % (name, LIST))
        elif name in users:
            bad.append("%s is in %s, but %s uses it; remove the line" % (name, LIST, users[name]))
    if len(functions) < 200 or len(set(functions) & set(users)) < 150:
        bad.append("only %d public functions were found, %d of them with a user"
                   % (len(functions), len(set(functions) & set(users))))
    if bad:
        sys.exit("\n".join(bad))


if len(sys.argv) != 2:
    sys.exit("usage: unused.py PROJECT")
main()
