# SPDX-License-Identifier: Apache-2.0
"""``python -m embla``: runs the program embla that the package brings."""

from __future__ import annotations

import os
import sys


def program() -> str:
    """The path of the program."""
    folder = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(folder, "bin", "embla")
    if not os.access(path, os.X_OK):
        raise FileNotFoundError(f"{path} is missing; install embla from a wheel")
    os.environ.setdefault("EMBLA_DEMO", os.path.join(folder, "demo"))
    return path


def main() -> None:
    """Replaces this process by the program, with the same arguments."""
    try:
        path = program()
    except FileNotFoundError as error:
        raise SystemExit(f"embla: {error}") from None
    os.execv(path, ["embla", *sys.argv[1:]])


if __name__ == "__main__":
    main()
