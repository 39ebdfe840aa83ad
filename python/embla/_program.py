# SPDX-License-Identifier: Apache-2.0
"""The program embla that the package brings: where it is, and calls of it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess

from ._bar import shown
from ._errors import ArgumentError


_HERE = os.path.dirname(os.path.abspath(__file__))


def folder_of(variable: str, name: str) -> str:
    """A folder of files that the package brings, unless a variable of the environment names another."""
    return os.environ.get(variable) or os.path.join(_HERE, name)


def program() -> str:
    """The path of the program."""
    path = os.path.join(_HERE, "bin", "embla")
    if not os.access(path, os.X_OK):
        raise FileNotFoundError(f"{path} is missing; install embla from a wheel")
    os.environ.setdefault("EMBLA_DEMO", os.path.join(_HERE, "demo"))
    if os.path.isdir(os.path.join(_HERE, "module")):
        os.environ.setdefault("EMBLA_PLAY", os.path.join(_HERE, "module"))
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
