# SPDX-License-Identifier: Apache-2.0
"""Indexes of texts, fits of encoders, and tickets of stores."""

import gc
import pathlib
import threading

import numpy as np
import pytest

import embla

DEMO = pathlib.Path(embla.__file__).parent / "demo"
TEXTS = ["the cat sleeps", "the king and\nthe queen", "qqqq zzzz", "monday and tuesday", "a dog barks"]


@pytest.fixture(scope="module")
def model():
    return embla.Encoder(DEMO / "words.vec")


def cosines(model, question):
    q, rows = model.encode(question, normalize="yes"), model.encode(TEXTS, normalize="yes")
    return rows @ q


# ---- index ----


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_the_nearest_texts_are_found(model, dtype):
    index = embla.Index(model, TEXTS, dtype=dtype)
    assert len(index) == 4 and index.info()["lines"] == 5 and index.info()["dtype"] == dtype
    found = index.search("a cat and a dog", top=3)
    expected = cosines(model, "a cat and a dog")
    assert [f.id for f in found] == [i for i in np.argsort(-expected) if i != 2][:3]
    assert np.allclose([f.score for f in found], np.sort(expected)[::-1][:3], atol=1e-2)
    assert all(f.text == TEXTS[f.id] for f in found)     # as it was given, with its line end
    assert "Index of 4 texts" in repr(index)


def test_several_questions_are_a_list_of_answers(model):
    index = embla.Index(model, TEXTS)
    questions = ["cat", "qqqq", "king"]
    found = index.search(questions, top=2)
    assert found == [index.search(q, top=2) for q in questions]
    assert found[1] == [] and len(found[0]) == 2 and index.search([]) == []
    assert len(index.search("cat", top=100)) == 4
    assert index.search(iter(["cat"]), top=2) == [found[0]]


def test_an_index_of_a_file_is_saved_and_opened(model, tmp_path):
    corpus = tmp_path / "lines.txt"
    corpus.write_text("\n".join(" ".join(t.split()) for t in TEXTS))
    index = embla.Index(model, corpus)
    index.save(tmp_path / "i.safetensors")
    again = embla.Index.open(tmp_path / "i.safetensors", model, corpus)
    assert again.info()["stored"] and not index.info()["stored"]
    assert again.search("queen") == index.search("queen")
    embla.Index(model, TEXTS).save(tmp_path / "j.safetensors")
    assert embla.Index.open(tmp_path / "j.safetensors", model, TEXTS).search("cat")[0].id == 0
    with pytest.raises(embla.ArgumentError):
        embla.Index.open(tmp_path / "j.safetensors", model, TEXTS[::-1])
    with pytest.raises(FileNotFoundError):
        embla.Index.open(tmp_path / "none.safetensors", model, TEXTS)


def test_what_an_index_refuses(model, tmp_path):
    with pytest.raises(embla.ShapeError):
        embla.Index(model, ["qqqq", ""])
    with pytest.raises(ValueError, match="there are no texts"):
        embla.Index(model, [])
    with pytest.raises(FileNotFoundError):
        embla.Index(model, tmp_path / "none.txt")
    with pytest.raises(TypeError):
        embla.Index("no encoder", TEXTS)
    with pytest.raises(TypeError):
        embla._embla.Index._make(model, None)
    with pytest.raises(embla.UnsupportedError, match="f32, f16 and bf16"):
        embla.Index(model, TEXTS, dtype="q4_0")
    with pytest.raises(ValueError):
        embla.Index(model, TEXTS).search("cat", top=0)
    with pytest.raises(TypeError):
        embla.Index(model, TEXTS).search(7)


def test_an_index_outlives_the_name_of_its_encoder():
    index = embla.Index(embla.Encoder(DEMO / "words.vec"), TEXTS)
    gc.collect()
    assert index.search("cat", top=1)[0].id == 0


# ---- fit ----


def test_a_fit_removes_what_all_texts_have_in_common(model, tmp_path):
    texts = (DEMO / "village.txt").read_text().splitlines()
    fitted = model.fit(texts, tmp_path / "w.fit", components=2)
    report = fitted.fitted
    assert report["components"] == 2 == fitted.info()["components"] and report["used"] > 0
    assert fitted.info()["weights"] and not model.info()["weights"]
    again = embla.Encoder(DEMO / "words.vec", fit=tmp_path / "w.fit")
    assert np.array_equal(again.encode(TEXTS), fitted.encode(TEXTS))
    assert not np.allclose(fitted.encode("the cat"), model.encode("the cat"))
    common = np.linalg.norm(model.encode(texts[:500]).mean(0))
    assert np.linalg.norm(fitted.encode(texts[:500]).mean(0)) < 0.3 * common
    with pytest.raises(embla.Error):
        fitted.fit(texts, tmp_path / "v.fit")       # it has a fit already
    with pytest.raises(embla.ArgumentError):
        embla.Encoder(DEMO / "names", fit=tmp_path / "w.fit")
    with pytest.raises(FileNotFoundError):
        model.fit(tmp_path / "none.txt", tmp_path / "v.fit")


def test_a_fit_can_be_stopped(model, tmp_path):
    with pytest.raises(embla.StoppedError):
        model.fit(DEMO / "village.txt", tmp_path / "w.fit", progress=lambda *_: False)
    assert not (tmp_path / "w.fit").exists()


# ---- tickets ----


@pytest.fixture(params=["ram", "mapped", "read", "direct"])
def store(request, path):
    c = embla.Checkpoint(path)
    return embla.Store(c, c.tensors()[0]["name"], place=request.param)


def test_a_ticket_has_the_rows_of_a_lookup(store, numbers):
    tickets = store.tickets()
    ids = [[3, 1], [199, 3]]
    under_way = [tickets.submit(ids) for _ in range(20)]
    for t in under_way:
        assert np.array_equal(t.wait(), numbers[ids])
        assert t.done() and np.array_equal(t.wait(), numbers[ids])
    out = np.zeros((2, 12), np.float32)
    t = tickets.submit(np.array([5, 6]), out)
    assert t.wait() is out and np.array_equal(out, numbers[[5, 6]])
    assert np.allclose(tickets.submit([7], scale=2.0).wait(), 2 * numbers[[7]])
    assert tickets.stats()["tickets"] == 22 and tickets.stats()["asked"] == 20 * 4 + 3


def test_a_ticket_is_cancelled_or_dropped(store):
    tickets = store.tickets()
    t = tickets.submit([1, 2])
    t.cancel()
    t.cancel()
    with pytest.raises(embla.ArgumentError, match="cancelled"):
        t.wait()
    with pytest.raises(embla.ArgumentError):
        t.done()
    for _ in range(50):
        tickets.submit([1, 2])
    assert tickets.stats()["cancelled"] == 51
    with pytest.raises(IndexError):
        tickets.submit([200])
    with pytest.raises(ValueError):
        tickets.submit([1], np.zeros((2, 12), np.float32))


def test_a_store_with_tickets_cannot_be_closed(store, numbers):
    tickets = store.tickets()
    t = tickets.submit([4])
    with pytest.raises(embla.BusyError):
        store.close()
    del tickets
    assert np.array_equal(t.wait(), numbers[[4]])
    store.close()
    with pytest.raises(TypeError):
        embla.Tickets("store")
    with pytest.raises(TypeError):
        embla.Ticket()


def test_too_many_tickets_are_busy(path, numbers):
    c = embla.Checkpoint(path)
    tickets = embla.Store(c, c.tensors()[0]["name"], place="direct").tickets(max_tickets=2)
    first = [tickets.submit([i]) for i in range(2)]
    with pytest.raises(embla.BusyError):
        tickets.submit([3])
    assert np.array_equal(first[0].wait(), numbers[[0]])
    assert np.array_equal(tickets.submit([3]).wait(), numbers[[3]])


def test_threads_share_tickets(store, numbers):
    tickets, wrong = store.tickets(), []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            ids = rng.integers(0, 200, 5)
            if not np.array_equal(tickets.submit(ids).wait(), numbers[ids]):
                wrong.append(ids)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# ---- n-grams into memory of the caller ----


def test_ngram_rows_into_out():
    hasher = embla.Ngram.model("qwen3.8-flash-next")
    tokens = np.arange(24, dtype=np.int32).reshape(2, 12)
    wanted = hasher.rows(tokens)
    out = np.zeros((2, 12, 16), np.int64)
    assert hasher.rows(tokens, out=out) is out and np.array_equal(out, wanted)
    for bad in (np.zeros((2, 12, 15), np.int64), np.zeros((24, 16), np.int64),
                np.zeros((2, 12, 16), np.float64)):
        with pytest.raises(embla.ShapeError, match="out must be int64"):
            hasher.rows(tokens, out=bad)
    with pytest.raises(BufferError):
        hasher.rows(tokens, out=b"bytes")
    with pytest.raises(TypeError, match="name must not be None"):
        embla.Ngram.model(None)
