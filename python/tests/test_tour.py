# SPDX-License-Identifier: Apache-2.0
"""The tour of docs/python.md runs as it is printed, twice, on the demo that the package brings."""

import os
import pathlib
import subprocess
import sys

import pytest

import embla
from tour import blocks

TOUR = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"


@pytest.mark.skipif(not TOUR.exists(), reason="the document is not here")
def test_the_tour_runs(tmp_path):
    demo = pathlib.Path(embla.__file__).parent / "demo"
    os.symlink(demo, tmp_path / "demo")
    (tmp_path / "tour.py").write_text(blocks(TOUR))
    for _ in range(2):
        done = subprocess.run([sys.executable, "tour.py"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
