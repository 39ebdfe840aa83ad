# SPDX-License-Identifier: Apache-2.0
"""Pickles and copies: by the path of a file, or with the content if it is in memory."""

import copy
import multiprocessing
import os
import pickle

import numpy as np
import pytest

import embla

DEMO = os.path.join(os.path.dirname(embla.__file__), "demo")


def pickled(thing):
    return pickle.loads(pickle.dumps(thing))


WAYS = pytest.mark.parametrize("again", [pickled, copy.copy, copy.deepcopy])


def first_row(table):
    return table[0].tolist()


@WAYS
def test_a_table_of_a_file_is_pickled_by_path(again, path, numbers, monkeypatch, tmp_path):
    monkeypatch.chdir(path.parent)
    t = embla.open(path.name)
    assert len(pickle.dumps(t)) < 1000
    data = pickle.dumps(t) if again is pickled else None
    monkeypatch.chdir(tmp_path if again is pickled else path.parent)
    new = pickle.loads(data) if data else again(t)
    assert new is not t and np.array_equal(new.vectors, numbers) and new.words["w7"] == 7
    assert new.checkpoint.path.endswith(path.name)


def test_the_tensor_and_the_options_are_kept():
    c = embla.Checkpoint(os.path.join(DEMO, "village"))
    name = next(x["name"] for x in c.tensors() if len(x["shape"]) == 2 and x["role"] != "tokens")
    t = embla.open(os.path.join(DEMO, "village"), name, copy=True, by_row=True)
    new = pickled(t)
    assert np.array_equal(new.vectors, t.vectors) and new.words is None
    assert new.placement == t.placement and new.checkpoint._options["copy"] is True


def test_a_file_that_has_changed_or_is_gone_is_an_error(table, tmp_path):
    file = tmp_path / "t.safetensors"
    table.save(file)
    data = pickle.dumps(embla.open(file))
    embla.Table.create(3, 12).save(file, overwrite=True)
    with pytest.raises(embla.FileError, match="has changed since it was pickled"):
        pickle.loads(data)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(data)


@WAYS
def test_a_table_in_memory_is_pickled_with_rows_and_words(again, table, numbers, names):
    new = again(table)
    assert np.array_equal(new.vectors, numbers) and new.words.list() == names
    assert new.near("w3", 5) == table.near("w3", 5)
    assert pickled(table.words).list() == names


@pytest.mark.parametrize("dtype", embla.dtypes())
def test_every_dtype_keeps_its_bits(dtype):
    t = embla.Table.create(4, 256, dtype)
    try:
        t.write(0, np.random.default_rng(3).standard_normal((4, 256)).astype(np.float32))
    except embla.UnsupportedError:
        pass
    new = copy.deepcopy(t)
    assert (new.dtype, new.rows, new.dim, new.scale) == (t.dtype, 4, 256, t.scale)
    assert memoryview(new.view()).tobytes() == memoryview(t.view()).tobytes()


def test_a_copy_is_independent_and_writable():
    t = embla.Table.create(2, 3)
    new = copy.deepcopy(t)
    new.write(0, [[1, 2, 3]])
    assert new[0].tolist() == [1, 2, 3] and t[0].tolist() == [0, 0, 0]
    scaled = embla.Table.create(2, 3, "i8", scale=0.5)
    scaled.write(1, [[1, 2, 3]])
    assert pickled(scaled).scale == 0.5 and pickled(scaled)[1].tolist() == [1, 2, 3]
    gaps = np.arange(24, dtype=np.float32).reshape(6, 4)[::2]
    assert np.array_equal(pickled(embla.Table.over(gaps)).vectors, gaps)


def test_a_pickle_does_not_end_the_use_of_a_sketch():
    t = embla.Table.create(4000, 16)
    t.init(1)
    t.sketch()
    assert pickled(t).sketch() == t.sketch()


def test_trained_words_outlive_their_temporary_file():
    t = embla.words(os.path.join(DEMO, "village.txt"), dim=8, epochs=1, clean="words", seed=1)
    data, row, words = pickle.dumps(t), t["cat"].tolist(), t.words.list()
    del t
    new = pickle.loads(data)
    assert new["cat"].tolist() == row and new.words.list() == words


@WAYS
def test_encoders_and_tokenizers(again, tmp_path):
    m = embla.Encoder(os.path.join(DEMO, "words.vec"))
    assert np.array_equal(again(m).encode("a cat"), m.encode("a cat"))
    fitted = m.fit(["the cat", "the dog", "a house"], tmp_path / "f.fit", components=1)
    new = again(fitted)
    assert np.array_equal(new.encode("a cat"), fitted.encode("a cat")) and new.fitted == fitted.fitted
    assert not np.array_equal(new.encode("a cat"), m.encode("a cat"))
    k = embla.Tokenizer(os.path.join(DEMO, "names"))
    assert again(k).encode("anna") == k.encode("anna")


@WAYS
def test_an_index_is_pickled_with_its_vectors(again, tmp_path):
    m = embla.Encoder(os.path.join(DEMO, "words.vec"))
    of_list = embla.Index(m, ["the cat sleeps", "monday", "the king"])
    assert again(of_list).search("dog") == of_list.search("dog")
    file = tmp_path / "texts.txt"
    file.write_text("the cat sleeps\nmonday\n")
    of_file = embla.Index(m, file)
    assert again(of_file).search(["dog"]) == of_file.search(["dog"])
    data = pickle.dumps(of_file)
    file.write_text("another text\n")
    with pytest.raises(embla.Error):
        pickle.loads(data)


@WAYS
def test_models_stores_and_hashers(again):
    model = embla.Model(os.path.join(DEMO, "names"))
    assert again(model).generate(seed=3) == model.generate(seed=3)
    assert first_row(again(model.table)) == first_row(model.table)
    assert again(model.table).words["a"] == model.words["a"]
    village = os.path.join(DEMO, "village")
    with embla.Store(village, place="ram") as store:
        new = again(store)
        assert np.array_equal(new.lookup([3, 1]), store.lookup([3, 1]))
        assert new.info()["placement"] == "ram"
    with pytest.raises(embla.ArgumentError, match="closed"):
        again(store)
    h = embla.Ngram.model("qwen3.8-flash-next", layer=-1)
    assert np.array_equal(again(h).rows([5, 6]), h.rows([5, 6]))
    h = embla.Ngram.open(village)
    assert np.array_equal(again(h).rows([5, 6]), h.rows([5, 6]))
    assert again(embla.Checkpoint(village)).format == "safetensors"


def test_what_cannot_be_pickled_says_so():
    t = embla.Table.create(2, 2)
    with embla.Store(os.path.join(DEMO, "village"), place="direct") as store:
        tickets = store.tickets()
        ticket = tickets.submit([1])
        for thing in (tickets, ticket, embla.Scatter(2, 2), embla.Optim(t), embla.Checkpoint.over(t)):
            with pytest.raises(TypeError, match="cannot (be )?pickle"):
                pickle.dumps(thing)
        ticket.wait()
        del ticket, tickets, thing


def test_another_process_gets_a_table(path, numbers, table):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(first_row, [embla.open(path), table]) == [numbers[0].tolist()] * 2
