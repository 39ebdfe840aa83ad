# SPDX-License-Identifier: Apache-2.0
"""The program embla that the package brings: where it is, and calls of it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess

from ._bar import shown
from ._errors import ArgumentError


def program() -> str:
    """The path of the program."""
    folder = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(folder, "bin", "embla")
    if not os.access(path, os.X_OK):
        raise FileNotFoundError(f"{path} is missing; install embla from a wheel")
    os.environ.setdefault("EMBLA_DEMO", os.path.join(folder, "demo"))
    return path


# What arguments of Python are called that have another name as an option of the program.
_NAMES = {"output": "path", "force": "overwrite=True", "as": "npy_dtype"}


def _run(line: list[str], verb: str, progress: bool | None) -> subprocess.CompletedProcess[str]:
    with shown(progress) as step:
        if step is None:
            return subprocess.run(line, capture_output=True, text=True, check=False)
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
            try:
                while True:
                    step(verb, 0, 0)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        out, err = run.communicate(timeout=0.1)
                        return subprocess.CompletedProcess(line, run.returncode, out, err)
            except BaseException:
                run.kill()
                raise


def run_program(verb: str, options: list[str], path: str, more: list[str] | None = None,
                *, progress: bool | None = False) -> subprocess.CompletedProcess[str]:
    """Runs a verb on a file. An error is raised in the words of Python: without options."""
    done = _run([program(), verb, *options, *(more or []), "--", path], verb, progress)
    if done.returncode != 0:
        said = done.stderr.strip().removeprefix("embla: ")
        said = re.sub(r"(?<![^\s'\"(])--([a-z-]+)", lambda m: _NAMES.get(m[1], m[1].replace("-", "_")), said)
        raise ArgumentError(said)
    return done
