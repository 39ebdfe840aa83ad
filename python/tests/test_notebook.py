# SPDX-License-Identifier: Apache-2.0
"""docs/python.ipynb runs from its first cell to its last, and is stored without results."""

import json
import pathlib

import pytest

NOTEBOOK = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.ipynb"
pytestmark = pytest.mark.skipif(not NOTEBOOK.exists(), reason="the notebook is not here")


def test_the_notebook_has_no_results():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = [c for c in cells if c["cell_type"] == "code"]
    assert code and all(c["outputs"] == [] and c["execution_count"] is None for c in code)


def test_the_notebook_runs(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3",
                            resources={"metadata": {"path": str(tmp_path)}}).execute()
    results = [c["outputs"] for c in notebook.cells if c.cell_type == "code"]
    assert any("text/html" in o.get("data", {}) for outputs in results for o in outputs)
