#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares docs/json.md with what the verbs print: for each command of the page, the keys of its JSON
and their types.
   usage: json_page.py [--update] PROGRAM FOLDER PAGE
FOLDER is a copy of the demo, in which the commands run. Each `$ embla .. --json` of the page is
followed by a table `| key | type |`. A key is a path: `results[].word`; `*` stands for names. Every verb with --json must have
a command. --update writes the tables anew."""
import json
import os
import re
import subprocess
import sys

HEAD = "| key | type |\n|---|---|\n"
ROW = re.compile(r"^\| `(.+?)` \| (.+?) \|$", re.M)
NUMBER = {"integer", "number"}


def kind(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return {int: "integer", float: "number", str: "string"}[type(value)]


def is_map(value):
    """Whether the keys of an object are names of things that look alike, not words of the format."""
    inner = list(value.values())
    return len(inner) > 1 and all(isinstance(i, dict) and i.keys() == inner[0].keys() for i in inner)


def walk(value, path, found):
    """Notes the type of every leaf under its path; an empty list or object is a leaf, too."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            walk(inner, path + ("." if path else "") + ("*" if is_map(value) else key), found)
    elif isinstance(value, list) and value:
        for inner in value:
            walk(inner, path + "[]", found)
    elif isinstance(value, (dict, list)):
        found.setdefault(path + ("[]" if isinstance(value, list) else ""), set())
    else:
        found.setdefault(path, set()).add(kind(value))


def keys_of(text):
    """The paths of all objects of an output, in the order in which they come first."""
    found = {}
    for line in text.splitlines():
        walk(json.loads(line), "", found)
    return found


def type_of(kinds):
    kinds = set(kinds) - ({"integer"} if NUMBER <= kinds else set())
    return " or ".join(sorted(kinds - {"null"}) + ["null"] * ("null" in kinds)) or "empty"


def fits(kinds, listed):
    """Whether the types are those of the page. A number may come as an integer, null may be absent."""
    allowed = set(listed.split(" or "))
    if "number" in allowed:
        allowed.add("integer")
    return kinds <= allowed


def type_on(table, key, kinds):
    """The type on the page, if it fits: a wider one, because one command does not print all."""
    listed = dict(ROW.findall(table)).get(key)
    return listed if listed and fits(kinds, listed) else type_of(kinds)


def false_module(folder, program):
    """A folder with a module for pages that only looks like one."""
    version = subprocess.run([program, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()[1]
    folder = os.path.abspath(os.path.join(folder, "module"))
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "play.wasm.gz"), "wb") as module:
        module.write(b"\x1f\x8b")
    with open(os.path.join(folder, "play.wasm.gz.sha256"), "w") as line:
        line.write("0  play.wasm.gz  %s\n" % version)
    return folder


def run(command, folder, env):
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 3):
        sys.exit("%s: exit code %d, %s" % (command, done.returncode, done.stderr))
    return keys_of(done.stdout)


def check(command, table, found):
    """Says what differs between the table of a page and what was printed."""
    listed = dict(ROW.findall(table))
    wrong = ["%s: `%s` is not on the page" % (command, key) for key in found if key not in listed]
    wrong += ["%s: `%s` is on the page, but was not printed" % (command, key) for key in listed if key not in found]
    wrong += ["%s: `%s` is %s, the page says %s" % (command, key, type_of(kinds), listed[key])
              for key, kinds in found.items() if key in listed and not fits(kinds, listed[key])]
    return wrong


def main(arguments):
    update = arguments[0] == "--update"
    program, folder, page = arguments[update:]
    env = dict(os.environ, PATH=os.path.dirname(os.path.abspath(program)) + ":" + os.environ["PATH"],
               EMBLA_PLAY=false_module(folder, program))
    text, wrong, seen = open(page).read(), [], set()
    pieces = re.split(r"(?:^```sh\n(.*?)^```\n\n)(\| key \|.*?\n(?=\n|\Z))", text, flags=re.M | re.S)
    for at in range(1, len(pieces), 3):
        commands, table = pieces[at:at + 2]
        lines = commands.rstrip("\n").split("\n")
        for line in lines[:-1]:
            subprocess.run(["bash", "-c", line], cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)
        found = run(lines[-1], folder, env)
        seen.add(lines[-1].split()[1])
        wrong += check(lines[-1], table, found)
        rows = HEAD + "".join("| `%s` | %s |\n" % (key, type_on(table, key, kinds)) for key, kinds in found.items())
        pieces[at] = "```sh\n" + commands + "```\n\n"
        pieces[at + 1] = rows if update else table
    verbs = subprocess.run([program, "help", "--json"], check=True, stdout=subprocess.PIPE, text=True).stdout
    for verb in json.loads(verbs)["verbs"]:
        options = [option["name"] for option in verb.get("options", [])]
        if "json" in options and verb["name"] not in seen | {"completion"}: # it prints a script
            wrong.append("the verb %s has --json and no command on the page" % verb["name"])
    if update:
        open(page, "w").write("".join(pieces))
    else:
        print("\n".join(wrong))
    print("%d commands" % (len(pieces) // 3))
    return 1 if wrong and not update else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
