# SPDX-License-Identifier: Apache-2.0
"""Words, neighbours, files, checkpoints, and every exception."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import embla


def test_words_and_rows(table, numbers, names):
    assert np.array_equal(table["w3"], numbers[3])
    assert np.array_equal(table[["w3", "w1"]], numbers[[3, 1]])
    assert table.get("none") is None and table.get("none", 7) == 7
    assert np.array_equal(table.get("w7"), numbers[7])
    assert "w3" in table and "none" not in table and b"w3" in table
    assert table.words["w9"] == 9 and table.words[9] == "w9" and table.words.get("x", -1) == -1
    assert len(table.words) == 200 and list(table.words) == names and table.words.end == 200
    assert table.words.list() == names and 3 in table.words and 999 not in table.words
    assert table.word(4) == "w4" and table.word(999) is None and table.words.word(2**70) is None
    assert "Vocab of 200 words" in repr(table.words)


def test_an_unknown_word_is_a_key_error_that_suggests(table):
    with pytest.raises(KeyError) as caught:
        table["w1x"]
    assert isinstance(caught.value, embla.NotFoundError)
    assert str(caught.value).startswith("'w1x' is not in the vocabulary; similar words are: w1")
    with pytest.raises(KeyError, match="has no word; the highest token is 199"):
        table.words[200]
    with pytest.raises(IndexError):
        table.id(200)
    with pytest.raises(embla.UnsupportedError, match="no words"):
        embla.Table.create(2, 2)["w"]
    assert "\udc80" not in table


def cosines(numbers, query):
    unit = numbers / np.linalg.norm(numbers, axis=1, keepdims=True)
    return unit @ (query / np.linalg.norm(query))


def test_near_equals_a_full_sort(table, numbers):
    hits = table.near("w3", 5)
    scores = cosines(numbers.astype(np.float64), numbers[3].astype(np.float64))
    scores[3] = -2
    order = np.argsort(-scores)[:5]
    assert [h.id for h in hits] == order.tolist()
    assert np.allclose([h.score for h in hits], scores[order])
    assert hits[0].word == f"w{order[0]}" and "<table>" in hits._repr_html_()
    ids, values = table.near(numbers[:4], 3)
    assert ids.shape == values.shape == (4, 3) and ids[:, 0].tolist() == [0, 1, 2, 3]
    assert table.near(numbers[2], 1)[0].id == 2
    assert table.near(numbers[2], 1, exclude=[2])[0].id != 2
    assert table.near(numbers[:2], 1, exclude=[[0], [1]])[0].tolist() != [[0], [1]]
    assert table.near(numbers[:2], 1, exclude=[0, 1])[0].shape == (2, 1)
    assert table.near(numbers[2], 1, measure="euclidean")[0].score == 0
    assert len(table.near("w3", 500)) == 199
    for top in (0, -1, 2**63):
        with pytest.raises(embla.ArgumentError, match=f"top is {top}; it must be"):
            table.near("w3", top)
        with pytest.raises(embla.ArgumentError, match=f"top is {top}; it must be"):
            table.analogy(["w3"], ["w2"], top)
    assert len(table.near("w3", 2**62)) == 199 and len(table.analogy(["w3"], ["w2"], 2**62)) == 198
    assert table.near("w3", 2, rows=10)[0].id < 10


def test_wrong_queries(table, numbers):
    with pytest.raises(embla.ShapeError, match="vectors of 11 numbers, but the table's dim is 12"):
        table.near(numbers[0][:11])
    with pytest.raises(ValueError):
        table.near(np.full(12, np.nan, np.float32))
    with pytest.raises(embla.ArgumentError, match="cosine, dot, euclidean"):
        table.near("w1", measure="manhattan")
    with pytest.raises(embla.ShapeError):
        table.near(numbers[:3], 1, exclude=[[1], [2]])
    with pytest.raises(embla.OutOfMemoryError, match="best rows of 3 queries"):
        table.near(numbers[:3], 2**60)


def test_analogy_compare_and_the_odd_one(table, numbers):
    hits = table.analogy(["w1", "w2"], ["w3"], 3)
    unit = numbers / np.linalg.norm(numbers, axis=1, keepdims=True)
    scores = cosines(numbers, unit[1] + unit[2] - unit[3])
    scores[[1, 2, 3]] = -2
    assert [h.id for h in hits] == np.argsort(-scores)[:3].tolist()
    assert table.analogy(["w1"], top=1, keep_words=True)[0].id == 1
    assert len(table.analogy(["w1", "w2"], ["w3"], 3, kind="multiply")) == 3
    found = table.compare("w1", "w2")
    assert np.isclose(found.cosine, cosines(numbers, numbers[1])[2], atol=1e-6)
    assert np.isclose(found.dot, numbers[1] @ numbers[2], atol=1e-5)
    assert np.isclose(found.distance, np.linalg.norm(numbers[1] - numbers[2]), atol=1e-5)
    assert table.similarity("w1", numbers[1]) == pytest.approx(1)
    assert table.doesnt_match(["w1", "w2", "w3"]) in ("w1", "w2", "w3")
    with pytest.raises(ValueError):
        table.compare("w1", numbers[1][:3])
    with pytest.raises(ValueError):
        table.analogy([], [])
    asked = table.analogy("w1 - w3 + w2", top=3)
    assert asked == hits == table.analogy("w1 + w2", "w3", 3)
    assert table.analogy("w1", keep_words=True)[0].id == 1
    with pytest.raises(embla.NotFoundError, match="'w1-w3'"):
        table.analogy("w1-w3")


def test_names_of_gensim(table, numbers, names):
    assert table.vector_size == table.embedding_dim == 12 and table.num_embeddings == 200
    assert table.key_to_index["w5"] == 5 and table.index_to_key == names
    assert np.array_equal(table.vectors, numbers)
    assert np.isclose(np.linalg.norm(table.get_vector("w5", norm=True)), 1, atol=1e-6)
    assert np.array_equal(table.get_vector("w5"), numbers[5])
    assert table.most_similar("w5", topn=2)[0][0] == table.near("w5", 2)[0].word
    assert table.most_similar(["w1"], ["w2"], topn=1) and table.similar_by_word("w5", 1)
    assert table.similar_by_vector(numbers[5], 1)[0][0] == "w5"
    half = embla.Table.create(3, 2, "f16")
    assert half.vectors.shape == (3, 2)


def test_studies_of_a_table(table, numbers):
    health = table.health()
    assert health["rows"] == 200 and len(health["zero"]) == 0 and health["ranked"][0].shape == (200,)
    norms = np.linalg.norm(numbers, axis=1)
    assert np.isclose(health["norm_mean"], norms.mean(), atol=1e-5)
    assert np.allclose(table.spectrum()["singular"], np.linalg.svd(numbers, compute_uv=False),
                       rtol=1e-4)
    xy, share = table.plane()
    assert xy.shape == (200, 2) and 0 < share[1] <= share[0] < 1
    assert table.plane(basis=[1, 2, 3, 4])[0].shape == (200, 2)
    seen = []
    points = table.layout(steps=20, progress=lambda *a: seen.append(a))
    assert points.xy.shape == (200, 2) and len(points.labels) == 200 and seen
    twice = embla.Table.over(np.concatenate([numbers, numbers[:2], np.zeros((1, 12), np.float32)]))
    sick = twice.health()
    assert sick["duplicates"] == [(200, 0), (201, 1)] and sick["zero"].tolist() == [202]
    assert sick["groups"]


def test_diff(table, numbers):
    other = numbers.copy()
    other[5] += 1
    found = table.diff(embla.Table.over(other))
    assert found["changed"] == 1 and found["changes"][0]["row"] == 5
    shuffled = embla.Table.of_words([f"w{i}" for i in range(199, -1, -1)], numbers[::-1].copy())
    assert table.diff(shuffled)["changed"] > 0
    assert table.diff(shuffled, by_word=True)["same"] == 200
    with pytest.raises(embla.ShapeError):
        table.diff(embla.Table.create(2, 2))
    with pytest.raises(TypeError):
        table.diff(numbers)


def test_eval(table, tmp_path):
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("w1 w2 3\nw3 w4 2\nw5 w6 1\nw7 none 1\n")
    found = table.eval(pairs)
    assert found["kind"] == "pairs" and found["parts"][0]["covered"] == 3
    assert found["missing"] == {"none": 1}
    analogies = tmp_path / "analogies.txt"
    analogies.write_text(": a\nw1 w2 w3 w4\n")
    assert table.eval(analogies)["parts"][0]["asked"] == 1
    with pytest.raises(FileNotFoundError):
        table.eval(tmp_path / "missing.txt")


@pytest.mark.parametrize("name", ["t.safetensors", "t.gguf", "t.npy", "t.vec", "t.w2v"])
def test_save_and_open(table, numbers, tmp_path, name):
    account = table.save(tmp_path / name)
    assert account.rows == 200 and account.same == 200 and account.rounded == 0
    again = embla.open(tmp_path / name)
    assert np.array_equal(again.vectors, numbers) and again["w3"].tolist() == numbers[3].tolist()
    assert again.diff(table)["changed"] == 0


def test_save_rounds_and_says_so(table, path, tmp_path):
    account = table.save(tmp_path / "t.safetensors", dtype="bf16")
    assert account.rounded == 200 and account.format == "safetensors" and account.lines
    opened = embla.open(path)
    assert opened.save(tmp_path / "u.gguf", dtype="f16").rows == 200
    with pytest.raises(embla.Error):
        table.save(tmp_path / "t.safetensors")  # it exists
    table.save(tmp_path / "t.safetensors", overwrite=True)
    with pytest.raises(embla.Error):
        table.save(tmp_path / "t.unknown")
    stopped = embla.Checkpoint(path)
    with pytest.raises(embla.StoppedError):
        stopped.save(tmp_path / "v.npy", progress=lambda *a: False)
    with pytest.raises(ZeroDivisionError):
        stopped.save(tmp_path / "v.npy", progress=lambda *a: 1 / 0)
    assert not (tmp_path / "v.npy").exists()


def test_checkpoint(path, numbers):
    c = embla.Checkpoint(path)
    (tensor,) = c.tensors()
    assert tensor["shape"] == (200, 12) and tensor["dtype"] == "f32"
    assert c.read(tensor["name"]).tobytes() == numbers.tobytes()
    assert c.read(tensor["name"], 4, 4).tobytes() == numbers.tobytes()[4:8]
    assert c.tie()["kind"] and c.facts()["tokens"] == 200 and c.format == "safetensors"
    assert c.files and c.value("nothing") is None and isinstance(c.notes, list)
    assert np.array_equal(c.table(tensor["name"])[1], numbers[1]) and "Checkpoint" in repr(c)
    with pytest.raises(KeyError):
        c.table("nothing")
    with pytest.raises(KeyError):
        c.read("nothing")
    with pytest.raises(IndexError):
        c.read(tensor["name"], 10**9)


def test_errors_are_the_classes_that_people_catch(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        embla.open(tmp_path / "none")
    assert isinstance(caught.value, embla.FileError) and isinstance(caught.value, OSError)
    (tmp_path / "bad.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{bad json bytes}")
    with pytest.raises(embla.FormatError) as bad:
        embla.open(tmp_path / "bad.safetensors")
    assert isinstance(bad.value, ValueError)
    (tmp_path / "x.pkl").write_bytes(pickle.dumps({"a": [1, 2, 3]}))
    with pytest.raises(embla.Error):
        embla.open(tmp_path / "x.pkl")
    with pytest.raises(embla.Error):
        embla.Tokenizer(tmp_path)
    assert issubclass(embla.OutOfMemoryError, MemoryError)
    assert issubclass(embla.BusyError, embla.Error)
    with pytest.raises(ValueError):
        embla.open("a\0b")


def test_a_cut_file_does_not_end_the_interpreter(table, tmp_path):
    file = tmp_path / "cut.safetensors"
    big = embla.Table.create(20_000, 12)
    big.save(file)
    code = ("import embla, numpy, os, sys\n"
            "t = embla.open(sys.argv[1])\n"
            "view = numpy.asarray(t.view())\n"
            "os.truncate(sys.argv[1], 100)\n"
            "try: t.lookup([19_999])\n"
            "except OSError as e: assert isinstance(e, embla.FileError)\n"
            "else: raise SystemExit('no error')\n"
            "view.sum()\n")
    # pytest's faulthandler would report the signal before embla's handler has dealt with it
    subprocess.run([sys.executable, "-c", code, str(file)], check=True)


def test_a_table_has_a_page_for_notebooks(table, path):
    assert "first words" in table._repr_html_() and "t.safetensors" in embla.open(path)._repr_html_()


def test_map(table, tmp_path):
    table.map(tmp_path / "m.html")
    assert (tmp_path / "m.html").stat().st_size > 1000
    with pytest.raises(embla.ArgumentError):
        table.map(tmp_path / "m.unknown")


def test_the_program_runs():
    done = subprocess.run([sys.executable, "-m", "embla", "--version"], capture_output=True,
                          text=True, check=True)
    assert done.stdout.startswith(f"embla {embla.__version__}")


def test_without_numpy(path):
    code = ("import sys; sys.modules['numpy'] = None\n"
            "import embla\n"
            f"t = embla.open({str(path)!r})\n"
            "r = t.lookup([1, 2])\n"
            "assert type(r) is embla.Array and memoryview(r).shape == (2, 12)\n"
            "assert t.near('w3', 2)[0].word and t.near([0.5] * 12, 1)\n")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_cost():
    found = embla.cost(rows=50257, dim=768, layers=12, positions=1024)
    assert found["tokens"] == (50257 * 768, 50257 * 768 * 4)
    assert embla.cost("gpt2")["total"][0] > 100_000_000 and "gpt2" in embla.cost_presets()
    with pytest.raises(KeyError):
        embla.cost("no such model")
    with pytest.raises(ValueError):
        embla.cost(rows=0, dim=3)


def test_version_and_help():
    assert embla.facts()["version"] == embla.__version__
    for name in embla.__all__:
        assert getattr(embla, name).__doc__, name


def test_a_sketch_changes_no_result():
    rng = np.random.default_rng(5)
    data = rng.standard_normal((4000, 40), dtype=np.float32)
    t = embla.Table.of_words([f"w{i}" for i in range(4000)], data)
    plain = [t.near(i, 10) for i in range(20)]
    similar = t.most_similar("w3", topn=5)
    assert 4000 * 28 <= t.sketch() <= 4000 * 29
    assert [t.near(i, 10) for i in range(20)] == plain
    assert t.most_similar("w3", topn=5) == similar == t.similar_by_word("w3", 5)
    assert t.similar_by_vector(data[3], 6)[1:] == similar


def test_a_sketch_is_not_used_after_rows_have_changed():
    data = np.random.default_rng(6).standard_normal((4000, 16), dtype=np.float32)
    for change in ("write", "view", "optim", "init"):
        t = embla.Table.create(4000, 16)
        t.write(0, data)
        t.sketch()
        if change == "write":
            t.write(17, data[2:3])
        elif change == "view":
            np.asarray(t.view())[17] = data[2]
        elif change == "optim":
            embla.Optim(t, "sgd").step(1.0, data[17] - data[2], rows=[17])
        else:
            t.init(3)
            with pytest.raises(embla.UnsupportedError, match="has no sketch"):
                t.sketch()
            continue
        assert 17 in [hit.id for hit in t.near(2, 3)], change
        with pytest.raises(embla.UnsupportedError, match="has no sketch"):
            t.sketch()
    with pytest.raises(embla.UnsupportedError, match="can be changed"):
        embla.Table.over(data).sketch()


def test_after_some_searches_a_sketch_is_made_and_finds_the_same(tmp_path):
    data = np.random.default_rng(7).standard_normal((4000, 16), dtype=np.float32)
    np.save(tmp_path / "t.npy", data)
    t = embla.open(tmp_path / "t.npy")
    wanted = t.near(9, 5)
    for _ in range(100):
        assert t.near(9, 5) == wanted


def test_doctor(tmp_path):
    demo = os.path.join(os.path.dirname(embla.__file__), "demo")
    found = embla.doctor(os.path.join(demo, "village"))
    assert found.good and found.errors == 0 and {f.check for f in found.findings} >= {"table", "tied"}
    data = np.ones((5, 4), np.float32)
    data[3, 2] = np.nan
    np.save(tmp_path / "t.npy", data)
    found = embla.doctor(tmp_path / "t.npy")
    assert any("NaN" in f.found or "nan" in f.found for f in found.findings if f.level != "fine")
    assert not embla.doctor(tmp_path / "t.npy", strict=True).good
    with pytest.raises(FileNotFoundError):
        embla.doctor(tmp_path / "none")
    (tmp_path / "bad.safetensors").write_bytes(b"nothing")
    with pytest.raises(embla.Error):
        embla.doctor(tmp_path / "bad.safetensors")


def test_doctor_needs_no_program(tmp_path, monkeypatch):
    def missing(*_args, **_options):
        raise AssertionError("the program is run")
    monkeypatch.setattr(subprocess, "run", missing)
    monkeypatch.setattr(subprocess, "Popen", missing)
    data = np.ones((5, 4), np.float32)
    data[1:3] = 0
    np.save(tmp_path / "t.npy", data)
    found = embla.doctor(tmp_path / "t.npy")
    assert (found.good, found.errors, found.warnings) == (True, 0, 1)
    zeros = next(f for f in found.findings if f.check == "zeros")
    assert zeros.level == "warning" and zeros.remedy and "all zero in 2 rows" in zeros.found
    assert [f for f in found.findings if f.check == "numbers"] == [
        embla.Finding("fine", "numbers", "array: all are finite", None)]
    named = embla.doctor(f"{tmp_path / 't.npy'}::array").findings[0]
    assert named.check == "table" and named.found.endswith("named by the caller")


def test_messages_name_what_is_wrong(table):
    with pytest.raises(embla.ShapeError, match=r"out is 2 x 12; it must be 3 x 12"):
        table.lookup([1, 2, 3], np.empty((2, 12), np.float32))
    with pytest.raises(embla.ShapeError, match=r"out is 11; it must be 12"):
        table.lookup(1, np.empty(11, np.float32))
    with pytest.raises(TypeError, match="str or bytes, or a list of them, not <class 'int'>"):
        embla.Encoder(os.path.join(os.path.dirname(embla.__file__), "demo", "names")).encode(7)
    with pytest.raises(ValueError, match="there are no sentences"):
        embla.words([])
