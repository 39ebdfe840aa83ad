#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of documents and compares their output.
   usage: readme.py [--update | --first N] PROGRAM FOLDER FILE.md..
Every `$ command` of a console block runs in FOLDER, with PROGRAM first on the PATH. A line '..'
stands for any lines; in such a block digits may differ, because it shows speeds. --update writes
the output into the documents instead. --first N ends after N commands of embla."""
import os
import re
import subprocess
import sys

OTHER = ("export", "cc ", "./")  # not commands of embla: first_hour.py runs them


def run(command, folder, env):
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.splitlines()


def same(expected, got):
    """Whether got is expected; a line '..' of expected stands for any lines."""
    loose = ".." in expected

    def plain(line):
        return re.sub(r"[\d,.]+", "0", line) if loose else line

    pattern = ""
    for line in expected:
        pattern += r"(?:.*\n)*" if line == ".." else re.escape(plain(line)) + r"\n"
    return re.fullmatch(pattern, "".join(plain(line) + "\n" for line in got)) is not None


def check_block(text, folder, env, update):
    """Runs the commands of one block. Returns its new text and the number of differences."""
    out, wrong = [], 0
    for part in re.split(r"^(?=\$ )", text, flags=re.M):
        lines = part.rstrip("\n").split("\n")
        if not part.startswith("$ ") or lines[0][2:].startswith(OTHER):
            out += lines if part else []
            continue
        blank = part.endswith("\n\n")
        expected = lines[1:]
        got = run(lines[0][2:], folder, env)
        if not same(expected, got):
            wrong += 1
            if not update:
                print("%s\n--- the document has\n%s\n--- the program prints\n%s\n" %
                      (lines[0], "\n".join(expected), "\n".join(got)))
        out += [lines[0]] + (got if update and ".." not in expected else expected)
        if blank and out[-1] != "":
            out.append("")
    return "\n".join(out).rstrip("\n") + "\n", wrong


def beginning(text, most):
    """The part of a block that ends with its command number `most` of embla, and the number of them."""
    kept, count = "", 0
    for part in re.split(r"^(?=\$ )", text, flags=re.M):
        count += part.startswith("$ embla")
        if count > most or count == most and not part.startswith("$ embla"):
            return kept, min(count, most)
        kept += part
    return kept, count


def main(arguments):
    update = arguments[0] == "--update"
    most = int(arguments[1]) if arguments[0] == "--first" else sys.maxsize
    program, folder, *files = arguments[1 if update else 2 if most < sys.maxsize else 0:]
    env = dict(os.environ, PATH=os.path.dirname(os.path.abspath(program)) + ":" + os.environ["PATH"])
    env.pop("COLUMNS", None)
    wrong = commands = 0
    for path in files:
        text = open(path).read()
        pieces = re.split(r"(^```console\n.*?^```$)", text, flags=re.M | re.S)
        for i in range(1, len(pieces), 2):
            body = pieces[i][len("```console\n"):-len("```")]
            body, count = beginning(body, most - commands)
            commands += count
            new, bad = check_block(body, folder, env, update)
            wrong += bad
            pieces[i] = "```console\n" + new + "```"
        if update:
            open(path, "w").write("".join(pieces))
    print("%d commands, %d differ" % (commands, wrong))
    return 1 if wrong and not update else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
