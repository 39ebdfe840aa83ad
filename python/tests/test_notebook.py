# SPDX-License-Identifier: Apache-2.0
"""docs/python.ipynb runs from its first cell to its last, and gives the results that it has stored.

    python test_notebook.py      runs it and stores its results
"""

import json
import pathlib
import re
import tempfile

import pytest

NOTEBOOK = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.ipynb"
pytestmark = pytest.mark.skipif(not NOTEBOOK.exists(), reason="the notebook is not here")


def run(folder):
    """The notebook with the results of a run in this folder, without times and machines."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3",
                            resources={"metadata": {"path": str(folder)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":  # a progress bar, on a slow machine, leaves an empty output
            cell.outputs = [o for o in cell.outputs if o.output_type != "display_data"]
    notebook.metadata = {"kernelspec": notebook.metadata.kernelspec, "language_info": {"name": "python"}}
    return notebook


def results(cells):
    """What a reader sees of each cell: texts, and of pictures their kind."""
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        for output in cell["outputs"]:
            data = output.get("data", {})
            text = output.get("text") or data.get("text/plain") or ""
            text = re.sub(r"0x[0-9a-f]+", "0x..", "".join(text))
            yield text, "".join(data.get("text/html", "")), sorted(data)


def test_the_notebook_has_results():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = [c for c in cells if c["cell_type"] == "code"]
    assert code and all(c["outputs"] for c in code[1:])
    assert [c["execution_count"] for c in code] == list(range(1, len(code) + 1))
    kinds = {kind for c in code for o in c["outputs"] for kind in o.get("data", {})}
    assert {"text/html", "image/svg+xml"} <= kinds
    assert not any(o["output_type"] == "error" for c in code for o in c["outputs"])


def test_the_notebook_gives_its_results(tmp_path):
    stored = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert list(results(run(tmp_path).cells)) == list(results(stored))


def test_what_the_notebook_says_is_true():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    found = ["".join(o["data"]["text/plain"]) for c in cells if "search(" in "".join(c["source"])
             for o in c["outputs"]]
    for hits in found:
        texts = re.findall(r"text='([^']*)'", hits)
        assert len(texts) == 3 == len(set(texts))
    assert found[-1].startswith("[Found(text='in winter there is much snow'")
    learned = next("".join(c["outputs"][0]["data"]["text/html"]) for c in cells
                   if "learned.near" in "".join(c["source"]))
    near = re.findall(r"<tr><td>(\w+)</td>", learned)
    assert len(near) == 5
    assert set(near) <= {"monday", "wednesday", "thursday", "friday", "saturday", "sunday"}


if __name__ == "__main__":
    import nbformat

    with tempfile.TemporaryDirectory() as folder:
        made = run(folder)
    text = json.dumps(json.loads(nbformat.writes(made)), indent=1, ensure_ascii=False)
    NOTEBOOK.write_text(text + "\n", encoding="utf-8")
