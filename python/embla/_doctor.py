# SPDX-License-Identifier: Apache-2.0
"""Whether the parts of a checkpoint agree."""

from __future__ import annotations

from typing import NamedTuple

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
    ``strict=True`` treats warnings as errors.
    """
    errors, warnings, found = Checkpoint(path, lenient=lenient)._doctor()
    good = errors == 0 and not (strict and warnings > 0)
    return Diagnosis(good, errors, warnings, [Finding(*f) for f in found])
