# SPDX-License-Identifier: Apache-2.0
"""Pages to learn with. The module is false: what it computes is tested elsewhere."""

import base64
import gzip
import hashlib
import json
import os
import re

import numpy as np
import pytest

import embla

DEMO = os.path.join(os.path.dirname(__file__), "../../demo")


def write_module(folder, version=embla.__version__, module=None, checksum=None):
    module = gzip.compress(b"no module", mtime=0) if module is None else module
    checksum = hashlib.sha256(module).hexdigest() if checksum is None else checksum
    (folder / "play.wasm.gz").write_bytes(module)
    (folder / "play.wasm.gz.sha256").write_text(f"{checksum}  play.wasm.gz  {version}\n")
    return module


@pytest.fixture
def module(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("module")
    monkeypatch.setenv("EMBLA_PLAY", os.fspath(folder))
    monkeypatch.setenv("EMBLA_DEMO", DEMO)
    write_module(folder)
    return folder


def facts_of(page):
    return json.loads(re.search(rb'id="page">(.*?)</script>', bytes(page))[1])


def file_of(page, path):
    found = re.search(rb'data-path="' + re.escape(path.encode()) + rb'">([^<]*)</script>', bytes(page))
    return None if found is None else base64.b64decode(found[1])


def test_the_demo_is_the_page_of_nothing(module):
    page = embla.play()
    assert page.model and page.rows == page.of == 302 and page.stored.startswith("the whole model")
    facts = facts_of(page)
    assert facts["model"]["path"] == "/model" and facts["model"]["name"] == "story" and facts["version"] == embla.__version__
    with open(os.path.join(DEMO, "story/model.safetensors"), "rb") as file:
        assert file_of(page, "/model/model.safetensors") == file.read()
    found = re.search(rb'id="module">([^<]*)</script>', bytes(page))
    assert gzip.decompress(base64.b64decode(found[1])) == b"no module"
    assert re.fullmatch(r"<embla.Page of \d\.\d\d MB: the whole model, .*>", repr(page))


def test_a_notebook_shows_a_page_in_a_frame(module):
    shown = embla.play(title="</script>")._repr_html_()
    assert shown.startswith("<iframe sandbox=") and shown.endswith("></iframe>")
    assert "<script" not in shown.split("srcdoc=")[1] and shown.count("<") == 2


def test_pages_are_saved_once(module, tmp_path):
    path = tmp_path / "play.html"
    page = embla.play(os.path.join(DEMO, "words.vec"), file=path)
    assert path.read_bytes() == bytes(page)
    with pytest.raises(embla.ArgumentError, match="already exists"):
        page.save(path)
    with pytest.raises(embla.ArgumentError, match="already exists"):
        embla.play(file=path)
    assert path.read_bytes() == bytes(page)
    embla.play(file=path, overwrite=True, title="again")
    assert b"<title>again</title>" in path.read_bytes()
    with pytest.raises(embla.ArgumentError, match="must end in .html"):
        page.save(tmp_path / "play.svg")


def test_tables_of_files_and_of_memory_have_their_rows_and_words(module, tmp_path):
    words = embla.open(os.path.join(DEMO, "words.vec"))
    page = embla.play(words)
    facts = facts_of(page)["model"]
    assert not page.model and (page.rows, page.of) == (300, 300) and facts["operand"].endswith("words.vec")
    made = embla.Table.of_words(["one", "two", "</script>"], np.eye(3, 4, dtype=np.float32))
    for rows, of in ((0, 3), (2, 3)):
        page = embla.play(made, rows=rows)
        assert (page.rows, page.of) == (rows or 3, of) and facts_of(page)["model"]["name"] == "table"
        for name in ("table.safetensors", "table.vocab.txt"):
            (tmp_path / name).write_bytes(file_of(page, "/model/" + name))
        back = embla.open(tmp_path / "table.safetensors")
        assert back.words.list() == ["one", "two", "</script>"][:page.rows]
        assert np.array_equal(back.vectors, np.eye(3, 4)[:page.rows])


def test_a_model_and_its_path_give_the_same_page(module):
    model = embla.Model(os.path.join(DEMO, "names"))
    page = embla.play(model)
    assert page.model and page.of == 27 and bytes(page) == bytes(embla.play(model.path))
    assert facts_of(page)["model"]["name"] == "names"


def test_a_large_table_is_stored_in_8_bits(module):
    rng = np.random.default_rng(1)
    page = embla.play(embla.Table.of_words([str(i) for i in range(30_000)], rng.standard_normal((30_000, 70), np.float32)))
    assert page.rows == 30_000 and "8 bits" in page.stored and len(bytes(page)) < 10_000_000
    large = embla.Table.create(30_000, 400)
    assert embla.play(large).rows < 30_000
    with pytest.raises(embla.RangeError, match="takes at most"):
        embla.play(large, rows=29_000)


def test_what_is_refused(module, tmp_path, monkeypatch):
    with pytest.raises(embla.FormatError, match="this is a text"):
        embla.play(os.path.join(DEMO, "names.txt"))
    with pytest.raises(FileNotFoundError):
        embla.play(tmp_path / "nothing")
    with pytest.raises(embla.ArgumentError, match="rows is for a table"):
        embla.play(os.path.join(DEMO, "story"), rows=5)
    with pytest.raises(embla.ArgumentError):
        embla.play(rows=-1)
    with pytest.raises(TypeError):
        embla.play(5)
    write_module(module, version="0.0.9")
    with pytest.raises(embla.FormatError, match="is of version 0.0.9"):
        embla.play()
    write_module(module, checksum="0" * 64)
    with pytest.raises(embla.FormatError, match="damaged"):
        embla.play()
    write_module(module, module=b"text")
    with pytest.raises(embla.ArgumentError, match="gzip"):
        embla.play()
    os.remove(module / "play.wasm.gz.sha256")
    with pytest.raises(embla.FormatError, match="sha256 is missing"):
        embla.play()
    os.remove(module / "play.wasm.gz")
    with pytest.raises(embla.MissingFileError, match="packaging/wasm"):
        embla.play()
    write_module(module)
    monkeypatch.setenv("EMBLA_DEMO", os.fspath(tmp_path))
    with pytest.raises(embla.NotFoundError, match="names/config.json"):
        embla.play()
