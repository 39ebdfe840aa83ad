#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what the README and docs/tour.md say, in a fresh clone, as a person would who reads the pages and types them.
   usage: first_hour.py PROJECT
The clone is that of PROJECT, with its changes that are not committed. HOME is an empty folder. All
commands run in one shell, twice: first the `sh` blocks of "Quick start", then every other block in
the order of the page. A `console` block has the output that is expected, and every command must
succeed. A `c` or `cmake` block is saved as a file, `pip install .` runs in the clone, and the
`python` block in the folder of the demo. Packages that are installed are not installed again:
apt-get only simulates it. Without PyPI, which has what builds the wheel, Python is left out. Exits
with 77 if there is no git."""
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

from readme import same

# The files that the README tells the reader to save.
SAVED = {"c": "rows.c", "cmake": "CMakeLists.txt"}


def clone(project, target):
    """A fresh clone of the project, with the changes of its work tree."""
    subprocess.run(["git", "clone", "--quiet", project, target], check=True)
    changes = subprocess.run(["git", "diff", "--binary", "HEAD"], cwd=project, check=True,
                             stdout=subprocess.PIPE).stdout
    if changes:
        subprocess.run(["git", "apply"], cwd=target, input=changes, check=True)


def commands_of(kind, body, again):
    """(command, expected lines or None) of one block of the page. again: it has run before."""
    if kind == "console":
        for part in re.split(r"^(?=\$ )", body, flags=re.M):
            lines = part.rstrip("\n").split("\n")
            if part.startswith("$ "):
                yield lines[0][2:], lines[1:]
    elif kind == "sh":
        for line in body.replace("\\\n", " ").splitlines():
            if line.startswith("apt-get install -y "):
                line = simulated(line)
            yield line, None
    elif kind in SAVED:
        yield "cat >%s <<'END OF BLOCK'\n%sEND OF BLOCK" % (SAVED[kind], body), None
    elif kind == "python":
        if not again:
            yield "python3 -m venv ~/venv && (cd \"$CLONE\" && ~/venv/bin/pip install --quiet .)", None
        yield "~/venv/bin/python - <<'END OF BLOCK'\n%sEND OF BLOCK" % body, None


def simulated(line):
    """apt-get of packages that are there changes nothing: not even newer versions."""
    if not shutil.which("apt-get"):
        return "true # there is no apt-get"
    there = subprocess.run(["dpkg", "-s"] + line.split()[3:], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL).returncode == 0
    return line.replace("install -y", "install --simulate", 1) if there else line


def has_pypi():
    """Whether pip finds what builds the wheel."""
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder,
                               "scikit-build-core"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0


def blocks(page):
    """The blocks of the page as a reader does them: those of "Quick start" first."""
    found = [(m.start(), m.group(1), m.group(2))
             for m in re.finditer(r"^```([a-z]+)\n(.*?)^```$", page, flags=re.M | re.S)]
    start = page.index("## Quick start")
    first = [b for b in found if b[1] == "sh" and start < b[0] < page.index("\n### ", start)]
    return first + [b for b in found if b not in first]


def run(commands, folder, env):
    """Runs the commands in one shell. Yields (command, expected, exit code, lines printed)."""
    script = ""
    for i, (command, _) in enumerate(commands):
        script += "{ %s\n} >%s/%d.out 2>&1 </dev/null\necho $? >%s/%d.code\n" % (
            command, folder, i, folder, i)
    subprocess.run(["bash", "-c", script], cwd=env["CLONE"], env=env, check=True)
    for i, (command, expected) in enumerate(commands):
        with open("%s/%d.out" % (folder, i)) as out, open("%s/%d.code" % (folder, i)) as code:
            yield command, expected, int(code.read()), out.read().splitlines()


def main(project):
    if not shutil.which("git") or subprocess.run(
            ["git", "rev-parse"], cwd=project, stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: there is no git, or this is no clone")
        return 77
    work = tempfile.mkdtemp()
    try:
        env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "EMBLA_DEMO", "EMBLA_ISA")}
        env.update(HOME=work + "/home", CLONE=work + "/source", LC_ALL="C.UTF-8",
                   CCACHE_DIR=env.get("CCACHE_DIR", os.path.expanduser("~/.cache/ccache")),
                   CCACHE_BASEDIR=work + "/source")
        os.makedirs(work + "/home")
        os.makedirs(work + "/said")
        clone(project, env["CLONE"])
        page = ""
        for name in "/README.md", "/docs/tour.md":
            with open(env["CLONE"] + name) as file:
                page += file.read()
        parts = blocks(page)
        if not has_pypi():
            print("PyPI cannot be reached: the lines of Python are left out")
            parts = [p for p in parts if p[1] != "python"]
        commands = []
        for again in False, True:
            commands.append(("cd \"$CLONE\"", None))
            commands += [c for _, kind, body in parts for c in commands_of(kind, body, again)]
        begun, wrong = time.time(), 0
        for command, expected, code, got in run(commands, work + "/said", env):
            differs = command.startswith("embla diff ") and code == 3  # the tables do, as the page says
            if (code == 0 or differs) and (expected is None or same(expected, got)):
                continue
            wrong += 1
            print("$ %s\n--- exit code %d, printed\n%s\n--- the page has\n%s\n" %
                  (command, code, "\n".join(got[-40:]),
                   "\n".join(expected) if expected is not None else "(any output)"))
        cpu = resource.getrusage(resource.RUSAGE_CHILDREN)
        print("%d commands, %d wrong; %.0f s, %.0f s of CPU time" %
              (len(commands), wrong, time.time() - begun, cpu.ru_utime + cpu.ru_stime))
        return 1 if wrong else 0
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
