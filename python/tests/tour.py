# SPDX-License-Identifier: Apache-2.0
"""Prints the Python blocks of a document as one program, for mypy and for test_tour.py."""

import pathlib
import re
import sys


def blocks(path: pathlib.Path) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.S))


if __name__ == "__main__":
    print(blocks(pathlib.Path(sys.argv[1])))
