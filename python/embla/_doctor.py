# SPDX-License-Identifier: Apache-2.0
"""Whether the parts of a checkpoint agree."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from ._hints import named
from ._program import run_program
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
    Checkpoint(path, lenient=lenient)  # an error of the file is raised here, with its class
    options = ["--json"] + ["--strict"] * strict + ["--lenient"] * lenient
    done = run_program("doctor", options, os.fspath(path), codes=(0, 3))
    data = json.loads(done.stdout)
    findings = [Finding(f["level"], f["check"], f["found"], f["remedy"]) for f in data["findings"]]
    return Diagnosis(done.returncode == 0, data["errors"], data["warnings"], findings)
