#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions of the inner loops of each kernel set, counted by qemu: not times.

    bench/instructions/count.py BUILD [SET..]

BUILD is the folder of a cross build with tests (build/aarch64), SET a kernel set (default: scalar
neon). Prints a table in Markdown: instructions for each number of a row. A loop runs 10 times, then
30 times; the difference leaves out what is done once. Needs cc and qemu-aarch64 with plugins.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def executed(command, plugin, arguments):
    emulator, rest = command[0], command[1:]
    run = subprocess.run([emulator, "-plugin", plugin, *rest, *arguments], capture_output=True, text=True)
    found = re.search(r"^executed (\d+)$", run.stderr, re.M)
    if run.returncode != 0 or not found:
        sys.exit(f"count.py: {' '.join(arguments)}: {run.stderr.strip()}")
    return int(found[1])


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build, sets = Path(sys.argv[1]), sys.argv[2:] or ["scalar", "neon"]
    script = (build / "run" / "tests" / "instruction_loops").read_text()
    command = re.search(r'^exec (.*) "\$@"$', script, re.M)[1].split()
    cases = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        plugin = f"{folder}/plugin.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", plugin, HERE / "plugin.c"], check=True)
        print("| loop | " + " | ".join(sets) + (" | ratio |" if len(sets) == 2 else " |"))
        print("|---|" + "---|" * (len(sets) + (len(sets) == 2)))
        for line in cases.splitlines():
            numbers, name = line.split("\t")
            each = []
            for chosen in sets:
                few, many = (executed(command, plugin, [name, chosen, times]) for times in ("10", "30"))
                each.append((many - few) / 20 / int(numbers))
            cells = [f"{x:.2f}" for x in each]
            if len(each) == 2:
                cells.append(f"{each[0] / each[1]:.1f}")
            print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
