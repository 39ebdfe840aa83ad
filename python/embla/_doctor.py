# SPDX-License-Identifier: Apache-2.0
"""Whether the parts of a checkpoint agree."""

from __future__ import annotations

import json
import os
import subprocess
from typing import NamedTuple

from ._errors import ArgumentError
from ._hints import named
from ._table import Checkpoint
from ._types import Path


class Finding(NamedTuple):
    """One comparison: its level ("error", "warning", "fine", "skipped"), and what helps."""

    level: str
    check: str
    found: str
    remedy: str | None


class Diagnosis(NamedTuple):
    """What doctor found; good means that there is no error."""

    good: bool
    errors: int
    warnings: int
    findings: list[Finding]


@named
def doctor(path: Path, *, strict: bool = False, lenient: bool = False) -> Diagnosis:
    """Checks that table, head, tokenizer and config of a checkpoint agree.

    All rows are read: NaN, infinities and rows of zeros are findings, too.
    ``strict=True`` treats warnings as errors. The program ``embla doctor`` does the work.
    """
    from .__main__ import program

    Checkpoint(path, lenient=lenient)  # an error of the file is raised here, with its class
    options = ["--strict"] * strict + ["--lenient"] * lenient
    done = subprocess.run([program(), "doctor", "--json", *options, "--", os.fspath(path)],
                          capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise ArgumentError(done.stderr.strip().removeprefix("embla: "))
    data = json.loads(done.stdout)
    findings = [Finding(f["level"], f["check"], f["found"], f["remedy"]) for f in data["findings"]]
    return Diagnosis(done.returncode == 0, data["errors"], data["warnings"], findings)
