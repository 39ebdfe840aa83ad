# SPDX-License-Identifier: Apache-2.0
"""``python -m embla``: runs the program embla that the package brings."""

from __future__ import annotations

import os
import sys

from ._program import program


def main() -> None:
    """Replaces this process by the program, with the same arguments."""
    try:
        path = program()
    except FileNotFoundError as error:
        raise SystemExit(f"embla: {error}") from None
    os.execv(path, ["embla", *sys.argv[1:]])


if __name__ == "__main__":
    main()
