# SPDX-License-Identifier: Apache-2.0
"""Tokenizers, encoders, models, trainings, word vectors, stores, n-grams, rows that learn."""

import base64
import json
import os
import pickle
import threading

import numpy as np
import pytest

import embla

WORDS = ["[UNK]", "the", "cat", "sat", "on", "mat", "##s", "."]


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A small static model: a WordPiece tokenizer and a table, as Model2Vec writes them."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": {w: i for i, w in enumerate(WORDS)}}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec", "normalize": True}))
    rows = np.random.default_rng(5).standard_normal((len(WORDS), 6)).astype(np.float32)
    header = json.dumps({"embeddings": {"dtype": "F32", "shape": [len(WORDS), 6],
                                        "data_offsets": [0, rows.nbytes]}}).encode()
    header += b" " * (-len(header) % 8)
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header
                                               + rows.tobytes())
    return folder, rows


def test_tokenizer(model):
    t = embla.Tokenizer(model[0])
    assert t.encode("The cats sat.") == [1, 2, 6, 3, 7]
    assert t("cat") == [2] and t.encode_batch(["cat", "mat"]) == [[2], [5]]
    assert t.encode(["cat", "the mat", ""]) == [[2], [1, 5], []]
    assert t.encode([]) == []
    tokens, starts = t.encode(["cat", "the mat"], arrays=True)
    assert tokens.tolist() == [2, 1, 5] and starts.tolist() == [0, 1, 3]
    assert t.encode("the cats", offsets=True) == ([1, 2, 6], [(0, 3), (4, 7), (7, 8)])
    assert t.encode("the cats", max_tokens=1) == [1]
    assert t.decode([1, 2, 6]) == "the cats" and t.decode([]) == ""
    assert t.text(2) == "cat" and t.text(99) is None and t.text(-1) is None
    assert t.token("##s") == 6 and t.token("dog") is None
    assert t.info()["kind"] == "WordPiece" and len(t) == 8 and "WordPiece" in repr(t)
    assert t.encode(b"cat \xff") == [2]  # U+FFFD is no text for a BERT tokenizer
    for wrong in (None, 3, ["a", 3], {"a": 1}.items()):
        with pytest.raises(TypeError):
            t.encode(wrong)
    with pytest.raises(embla.Error):
        t.encode(b"\xff", strict=True)
    with pytest.raises(UnicodeEncodeError):
        t.encode("\ud800")
    with pytest.raises((IndexError, embla.Error)):
        t.decode([-1])
    with pytest.raises(FileNotFoundError):
        embla.Tokenizer("/nothing/here")


def test_tokenizer_of_bytes(model):
    data = (model[0] / "tokenizer.json").read_bytes()
    for given in (data, bytearray(data), memoryview(data)):
        t = embla.Tokenizer.from_bytes(given)
        assert t.encode("The cats sat.") == [1, 2, 6, 3, 7] and "the bytes" in repr(t)
    again = pickle.loads(pickle.dumps(embla.Tokenizer.from_bytes(data, "mine")))
    assert again.encode("cat") == [2] and again.path == "mine"
    with pytest.raises(embla.FormatError, match="mine"):
        embla.Tokenizer.from_bytes(data[:-9], "mine")
    for wrong in (None, "text", 3):
        with pytest.raises(TypeError):
            embla.Tokenizer.from_bytes(wrong)


def test_stream(model):
    t = embla.Tokenizer(model[0])
    tokens = t.encode("The cats sat on the mat.")
    stream = t.stream()
    assert [stream.add(token) for token in tokens[:3]] == ["the", " cat", "s"]
    assert stream.add(tokens[3:]) + stream.end() == t.decode(tokens)[len("the cats"):]
    assert stream.add([]) == "" and stream.end() == "" and stream.add(99) == ""
    assert stream.add(np.array(tokens[:1])) == " the"  # the text goes on
    assert repr(stream) == f"<embla.Detokenizer of {t!r}>"
    del t
    assert stream.add(2) == " cat"  # it keeps its tokenizer
    for wrong in (None, "text", [1.5]):
        with pytest.raises(TypeError):
            stream.add(wrong)
    with pytest.raises((IndexError, embla.Error)):
        stream.add([-1])
    with pytest.raises(TypeError):
        embla.Detokenizer()
    with pytest.raises(TypeError):
        pickle.dumps(stream)


def test_a_stream_holds_back_a_character_until_it_is_complete():
    ranks = b"".join(base64.b64encode(bytes([b])) + b" %d\n" % b for b in range(256))
    t = embla.Tokenizer.from_bytes(ranks)  # each token is a byte
    text = "caf\u00e9 \U0001f600!"
    tokens, stream = t.encode(text), t.stream()
    assert tokens == list(text.encode())
    assert [stream.add(token) for token in tokens] == [*"caf", "", "\u00e9", " ", "", "", "", "\U0001f600", "!"]
    assert stream.add([0xf0, 0x9f]) == "" and stream.end() == "\ufffd"


def test_a_stream_leaves_out_special_tokens():
    names = embla.Tokenizer(os.path.join(os.path.dirname(embla.__file__), "demo", "names"))
    tokens = [26, *names.encode("anna"), 26]
    for keep in (False, True):
        stream = names.stream(keep_special=keep)
        said = "".join(stream.add(token) for token in tokens) + stream.end()
        assert said == names.decode(tokens, keep_special=keep) == ("<bos>anna<bos>" if keep else "anna")


def test_encoder(model):
    folder, rows = model
    m = embla.Encoder(folder)
    one = m.encode("the cats")
    expected = rows[[1, 2, 6]].mean(0)
    assert one.shape == (6,) and np.allclose(one, expected / np.linalg.norm(expected), atol=1e-6)
    both = m.encode(["the cats", "mat"])
    assert both.shape == (2, 6) and np.array_equal(both[0], one)
    assert m.encode([]).shape == (0, 6) and not m.encode("").any()
    assert np.allclose(m.encode("the cats", normalize="no"), expected, atol=1e-6)
    assert m.encode("cat", dim=2).shape == (2,) and m.dim == 6
    out = np.empty((2, 6), np.float32)
    assert m.encode(["the cats", "mat"], out=out) is out and np.array_equal(out, both)
    assert m.tokens("the cats") == [1, 2, 6] and m.similarity("cat", "cat") == pytest.approx(1)
    assert m.info()["compat"] == "model2vec" and "model2vec" in repr(m)
    assert embla.Encoder(folder, compat="st5").info()["compat"] == "st5"
    assert m.encode("the cats", max_tokens=1, overflow="truncate").shape == (6,)
    with pytest.raises(IndexError):
        m.encode("the cats", max_tokens=1)
    with pytest.raises(IndexError):
        m.encode("cat", dim=7)
    with pytest.raises(ValueError, match="model, yes, no"):
        m.encode("cat", normalize="maybe")
    with pytest.raises(TypeError):
        m.encode(7)
    with pytest.raises(ValueError):
        m.encode("cat", out=np.empty((2, 6), np.float32))


def test_ngram():
    n = embla.Ngram.model("qwen3.8-flash-next")
    rows = n.rows([100, 200])
    assert rows.shape == (2, 16) and rows.dtype == np.int64
    assert n.rows([[100, 200], [100, 200]]).shape == (2, 2, 16)
    assert np.array_equal(n.rows([200], history=[-1, 100])[0], rows[1])
    assert n.info()["rows_per_token"] == 16 and "qwen3.8-flash-next" in embla.Ngram.models()
    with pytest.raises(KeyError):
        embla.Ngram.model("nothing")
    with pytest.raises(IndexError):
        n.rows([2**40])
    with pytest.raises(IndexError):
        n.rows([100], history=[-2, 5])
    with pytest.raises(ValueError):
        n.rows([100], history=[1])
    with pytest.raises(ValueError):
        n.rows([[[100]]])
    with pytest.raises(TypeError):
        embla.Ngram()


@pytest.mark.parametrize("place", ["mapped", "ram", "read", "shared"])
def test_store(path, numbers, tmp_path, place):
    c = embla.Checkpoint(path)
    named = {"shared_folder": tmp_path} if place == "shared" else {}
    with embla.Store(c, c.tensors()[0]["name"], place=place, **named) as s:
        assert s.rows == 200 and s.dim == 12 and s.info()["placement"] == place
        ids = [[3, 1], [199, 3]]
        assert np.array_equal(s.lookup(ids), numbers[ids])
        out = np.empty((2, 12), np.float32)
        assert s.lookup([3, 1], out) is out and np.array_equal(out, numbers[[3, 1]])
        assert np.allclose(s.lookup([3], scale=2.0), 2 * numbers[[3]])
        assert s.verify()["different"] == 0
        s.warm()
        with pytest.raises(IndexError):
            s.lookup([200])
        if place == "shared":
            s.unshare()
    s.close()
    for call in (lambda: s.lookup([1]), s.info, s.warm, s.verify, s.unshare):
        with pytest.raises(embla.ArgumentError, match="this Store is closed"):
            call()


def test_store_refuses(path):
    with pytest.raises(KeyError):
        embla.Store(path, "nothing")
    with pytest.raises(ValueError, match="ram, shared, mapped, read, direct"):
        embla.Store(path, place="moon")


def check_predictions(model):
    vocab = model.shape()["vocab"]
    every = model.predict("ann", top=10**6)
    assert len(every) == vocab and sorted(p.id for p in every) == list(range(vocab))
    assert abs(sum(p.probability for p in every) - 1) < 1e-9
    assert [p.logit for p in every] == sorted((p.logit for p in every), reverse=True)
    assert all(p.word == model.words.word(p.id) for p in every)
    logits = np.array([p.logit for p in every])
    for temperature in (0.5, 1.0, 3.0):
        some = model.predict("ann", top=4, temperature=temperature)
        wanted = np.exp(logits / temperature) / np.exp(logits / temperature).sum()
        assert [p.id for p in some] == [p.id for p in every[:4]]
        assert np.allclose([p.probability for p in some], wanted[:4])
    begin, _, leads = model._special
    assert leads and model.predict() == model.predict([begin])
    assert model.predict("ann") == model.predict([begin, *model.tokens("ann")], threads=2)
    assert "<td>" in every._repr_html_() and len(every._repr_html_().split("<tr>")) == vocab + 2
    with pytest.raises(ValueError, match="temperature is 0; it must be above 0"):
        model.predict("ann", temperature=0)
    with pytest.raises(ValueError, match="temperature is -1"):
        model.predict("ann", temperature=-1)
    with pytest.raises(embla.RangeError, match="tokens, but the model has 16 positions"):
        model.predict("a" * 16)
    with pytest.raises(ValueError, match="at least 1 token"):
        model.predict([])


def test_shape_and_engine_of_a_training(tmp_path):
    text = tmp_path / "names.txt"
    text.write_text("\n".join(["anna", "bella", "clara", "dora", "emma", "frida", "greta"] * 8))
    named = {"steps": 2, "length": 8, "batch": 2, "layers": 1, "seed": 3}

    def shape(name, **options):
        return embla.train(text, tmp_path / name, **named, **options).model.shape()

    assert {k: v for k, v in shape("a", dim=16).items() if k in ("dim", "heads", "tied")} == \
        {"dim": 16, "heads": 4, "tied": True}
    llama = shape("b", preset="llama-mini", heads=3, tied=True)
    assert (llama["heads"], llama["kv_heads"], llama["tied"]) == (3, 1, True)
    assert shape("c", dim=12, positions="rotary", tied=False)["heads"] == 6
    names = {kind: set(embla.train(text, tmp_path / kind, dim=12, positions=kind, **named)
                       .model.tensors()) for kind in ("learned", "none")}
    assert names["learned"] - names["none"] and not names["none"] - names["learned"]
    a, b = (embla.train(text, tmp_path / f"e{i}", dim=48, engine="none", threads=i + 1, **named).model
            for i in range(2))
    assert all(np.array_equal(a.tensors()[k], b.tensors()[k]) for k in a.tensors())
    with pytest.raises(embla.ArgumentError, match="positions"):
        embla.train(text, tmp_path / "x", positions="waves")
    with pytest.raises(embla.ArgumentError, match="engine"):
        embla.train(text, tmp_path / "x", engine="gpu")
    with pytest.raises(embla.ArgumentError, match="resume keeps .* remove tied, engine"):
        embla.train(out=tmp_path / "a", resume=True, tied=True, engine="none")


def test_training_is_saved_by_an_interrupt_and_resumed(tmp_path):
    text = tmp_path / "names.txt"
    text.write_text("\n".join(["anna", "bella", "clara", "dora", "emma", "frida", "greta"] * 8))

    def stop(report):
        if report.step == 7:
            raise KeyboardInterrupt

    named = {"preset": "microgpt", "steps": 20, "seed": 3}
    whole = embla.train(text, tmp_path / "a", **named)
    assert whole.steps == 20 and len(whole.losses) == 20 and whole.losses[-1] < whole.losses[0]
    with pytest.raises(KeyboardInterrupt) as caught:
        embla.train(text, tmp_path / "b", progress=stop, **named)
    assert "resume=True" in caught.value.__notes__[0]
    rest = embla.train(out=tmp_path / "b", resume=True)
    assert rest.steps == 20 and rest.losses == whole.losses[8:]
    a, b = whole.model, rest.model
    assert all(np.array_equal(a.tensors()[k], b.tensors()[k]) for k in a.tensors())
    texts = a.generate(count=3, seed=1)
    assert len(texts) == 3 and texts == b.generate(count=3, seed=1)
    assert a.table.rows == a.shape()["vocab"] and a.words is not None and "parameters" in repr(a)
    assert np.array_equal(a.table[0], a.tensors()["wte"][0])
    early = embla.train(text, tmp_path / "c", progress=lambda r: False, **named)
    assert early.steps == 1
    with pytest.raises(embla.RangeError, match="the training has diverged"):
        embla.train(text, tmp_path / "high", **{**named, "rate": 1e20})
    with pytest.raises(embla.RangeError, match="rows are NaN or infinite, so nothing is written"):
        embla.words(os.path.join(os.path.dirname(embla.__file__), "demo", "village.txt"),
                    tmp_path / "high.safetensors", rate=10, epochs=3)
    assert not os.path.exists(tmp_path / "high.safetensors")
    with pytest.raises(embla.ArgumentError, match="already contains a training"):
        embla.train(text, tmp_path / "a", **named)
    with pytest.raises(embla.ArgumentError, match="resume keeps the settings"):
        embla.train(out=tmp_path / "a", resume=True, rate=0.1)
    with pytest.raises(KeyError):
        embla.train(out=tmp_path / "none", resume=True)
    with pytest.raises(KeyError):
        embla.train(text, tmp_path / "d", preset="nothing")
    with pytest.raises(embla.ArgumentError):
        embla.train(text)
    with pytest.raises(FileNotFoundError):
        embla.train(tmp_path / "missing.txt", tmp_path / "e")
    with pytest.raises(TypeError):
        embla.train(text, tmp_path / "e", nonsense=3)
    check_predictions(a)
    with pytest.raises(IndexError):
        a.generate([10**6])
    with pytest.raises(ValueError):
        a.generate([])


SENTENCES = [["the", "cat", "sat"], ["a", "dog", "ran"], ["the", "dog", "sat"]] * 60


def test_word_vectors(tmp_path):
    named = {"dim": 8, "epochs": 2, "seed": 1, "threads": 1}
    t = embla.words(SENTENCES, **named)
    assert t.dim == 8 and "dog" in t and len(t.words) == 6
    text = tmp_path / "c.txt"
    text.write_text("\n".join(" ".join(s) for s in SENTENCES) + "\n")
    same = embla.words(text, tmp_path / "w.safetensors", **{**named, "threads": 2})
    assert np.array_equal(same["dog"], t["dog"]) and not (tmp_path / "w.safetensors.state").exists()
    assert embla.words(text, method="cbow", **named).rows == 6
    with pytest.raises(KeyError):
        t.vector("dogs")
    grams = embla.words(text, min_gram=3, max_gram=4, **named)
    assert grams.vector("dogs").shape == (8,) and np.array_equal(grams.vector("dog"), grams["dog"])

    def stop(step, steps, loss):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embla.words(text, tmp_path / "x.safetensors", progress=stop, **named)
    assert (tmp_path / "x.safetensors.state").exists()
    again = embla.words(text, tmp_path / "x.safetensors", resume=True, **named)
    assert np.array_equal(again["dog"], t["dog"])
    with pytest.raises(ValueError, match="skipgram, cbow"):
        embla.words(text, method="glove")
    with pytest.raises(embla.ShapeError):
        embla.words(["one"], **named)
    with pytest.raises(embla.ArgumentError, match="must end in .safetensors"):
        embla.words(text, tmp_path / "x.vec", **named)
    with pytest.raises(FileNotFoundError):
        embla.words(tmp_path / "missing.txt")


def test_rows_that_learn():
    s = embla.Scatter(100, 10)
    g = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert s.plan([5, 2, 5]).tolist() == [2, 5]
    assert np.array_equal(s.sum(g), np.stack([g[1], g[0] + g[2]]))
    with pytest.raises(embla.ShapeError):
        s.sum(g[:2])
    with pytest.raises(embla.ShapeError):
        s.plan(list(range(11)))
    with pytest.raises(IndexError):
        s.plan([100])
    with pytest.raises(TypeError):
        embla.Scatter(1)
    t = embla.Table.create(6, 4)
    o = embla.Optim(t, "sgd")
    o.step(0.5, np.ones((2, 4), np.float32), rows=[1, 3])
    assert o.steps == 1 and (t[1] == -0.5).all() and (t[0] == 0).all()
    o.step(0.5, np.ones((6, 4), np.float32))
    assert (t[1] == -1).all()
    for kind in ("adagrad", "adagrad-rowwise", "adamw"):
        embla.Optim(t, kind).step(0.1, np.ones((1, 4), np.float32), [2])
    with pytest.raises(embla.ShapeError):
        o.step(0.5, np.ones((2, 4), np.float32))
    with pytest.raises(embla.Error):
        o.step(0.5, np.ones((2, 4), np.float32), [3, 1])
    with pytest.raises(embla.Error):
        embla.Optim(embla.Table.over(np.zeros((2, 2), np.float32)))  # it is read-only
    with pytest.raises(embla.UnsupportedError):
        embla.Optim(embla.Table.create(2, 32, "q8_0"))


@pytest.mark.parametrize("kind, named", [
    ("sgd", {"decay": 0.1}), ("sgd", {"momentum": 0.9}), ("sgd", {"momentum": 0.9, "nesterov": True}),
    ("adagrad", {"decay": 0.1}), ("adagrad-rowwise", {"decay": 0.1}), ("adamw", {"decay": 0.1})])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_rows_catch_up_with_dense_steps(kind, named, dtype):
    def table():
        t = embla.Table.create(6, 4, dtype)
        t.write(0, np.arange(24, dtype=np.float32).reshape(6, 4) / 8)
        return t

    dense, lazy = table(), table()
    a, b = embla.Optim(dense, kind, **named), embla.Optim(lazy, kind, catch_up=True, **named)
    random = np.random.default_rng(5)
    for rows in ([0, 1], [2], [4]):
        g = np.zeros((6, 4), np.float32)
        g[rows] = random.standard_normal((len(rows), 4))
        a.step(0.5, g)
        b.step(0.5, g[rows], rows)
    assert not np.array_equal(lazy[:], dense[:])  # rows wait for their updates
    b.catch_up([])
    assert not np.array_equal(lazy[0], dense[0])
    b.catch_up([0, 2, 0])
    assert np.array_equal(lazy[[0, 2]], dense[[0, 2]]) and not np.array_equal(lazy[1], dense[1])
    b.catch_up()
    assert np.array_equal(lazy[:], dense[:])
    with pytest.raises(IndexError):
        b.catch_up([6])


@pytest.mark.parametrize("kind, named, states", [
    ("sgd", {}, {}), ("sgd", {"momentum": 0.9}, {"momentum": 4}), ("adagrad", {}, {"squares": 4}),
    ("adagrad-rowwise", {}, {"squares": 1}), ("adamw", {}, {"mean": 4, "squares": 4})])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_an_optimizer_continues_from_its_state(kind, named, states, dtype):
    if dtype == "bf16":
        states = {**states, "master": 4}
    first = embla.Table.create(6, 4, dtype)
    first.init(1)
    o = embla.Optim(first, kind, catch_up=True, decay=0.1, **named)
    g = np.random.default_rng(6).standard_normal((5, 2, 4)).astype(np.float32)
    for n in range(3):
        o.step(0.1, g[n], [n, n + 2])
    state = o.state()
    assert state.pop("steps") == 3
    assert {name: array.shape for name, array in state.items()} == {n: (6, d) for n, d in states.items()}
    state["steps"] = 3
    second = embla.Table.create(6, 4, dtype)
    second.write(0, first[:])
    p = embla.Optim(second, kind, catch_up=True, decay=0.1, **named)
    p.load_state(state)
    assert p.steps == 3
    for n in range(3, 5):
        for each in (o, p):
            each.step(0.1, g[n], [1, 4])
    for each in (o, p):
        each.catch_up()
    assert np.array_equal(first[:], second[:])
    for name in states:
        assert np.array_equal(o.state()[name], p.state()[name])


def test_a_state_of_another_optimizer_is_refused():
    t = embla.Table.create(6, 4)
    o = embla.Optim(t, "adamw")
    o.step(0.1, np.ones((6, 4), np.float32))
    before = o.state()
    for change, message in (
            ({"mean": np.zeros((5, 4), np.float32)}, r"must be \(6, 4\)"),
            ({"mean": np.zeros(24, np.float32)}, r"must be \(6, 4\)"),
            ({"more": 1}, "4 entries"), ({"steps": -1}, "steps is -1")):
        with pytest.raises(embla.Error, match=message):
            o.load_state({**before, "mean": np.ones((6, 4), np.float32), **change})
    for name in before:
        with pytest.raises(embla.ArgumentError, match=f"has no '{name}'"):
            o.load_state({key: value for key, value in before.items() if key != name})
    for wrong in (None, [], "adamw"):
        with pytest.raises(TypeError):
            o.load_state(wrong)
    with pytest.raises(TypeError):
        o.load_state({**before, "steps": "1"})
    after = o.state()
    assert after["steps"] == 1 and np.array_equal(after["mean"], before["mean"])  # nothing was changed


def test_head():
    v = np.random.default_rng(2).standard_normal((7, 4)).astype(np.float32)
    h = np.random.default_rng(3).standard_normal((3, 4)).astype(np.float32)
    t = embla.Table.over(v)
    x = embla.logits(t, h)
    assert np.allclose(x, h @ v.T, atol=1e-5)
    p = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    expected = -np.log(p[np.arange(3), [1, 2, 3]]).mean()
    if embla.facts()["engine"] == "none":
        pytest.skip("no engine for matrix products")
    assert embla.loss(t, h, [1, 2, 3]) == pytest.approx(expected, abs=1e-5)
    loss, dh, dt = embla.loss(t, h, [1, 2, 3], gradients=True)
    p[np.arange(3), [1, 2, 3]] -= 1
    assert np.allclose(dh, p @ v / 3, atol=1e-5) and np.allclose(dt, p.T @ h / 3, atol=1e-5)
    assert embla.loss(t, h, [1, -100, 3]) > 0
    with pytest.raises(IndexError):
        embla.loss(t, h, [1, 2, 7])
    with pytest.raises(embla.ShapeError):
        embla.loss(t, h, [1, 2])


def test_sampled_loss():
    if embla.facts()["engine"] == "none":
        pytest.skip("no engine for matrix products")
    random = np.random.default_rng(4)
    v, h = (random.standard_normal(shape).astype(np.float32) for shape in ((50, 8), (3, 8)))
    t, targets = embla.Table.over(v), [7, 11, 7]
    full, dh, dt = embla.loss(t, h, targets, gradients=True)
    # So many draws that every row is among them: the loss over all rows.
    loss, sh, rows, st = embla.loss(t, h, targets, gradients=True, negatives=20_000, uniform=True)
    assert loss == pytest.approx(full, abs=1e-5) and rows.tolist() == list(range(50))
    assert np.allclose(sh, dh, atol=1e-5) and np.allclose(st, dt, atol=1e-5)
    loss, sh, rows, st = embla.loss(t, h, targets, gradients=True, negatives=5, seed=1)
    assert sh.shape == h.shape and {7, 11} <= set(rows.tolist()) and len(rows) <= 7
    assert (np.diff(rows) > 0).all() and st.shape == (len(rows), 8)
    assert loss == embla.loss(t, h, targets, negatives=5, seed=1)
    assert loss != embla.loss(t, h, targets, negatives=5, seed=2)
    assert loss != embla.loss(t, h, targets, negatives=5, seed=1, step=1)
    assert loss != embla.loss(t, h, targets, negatives=5, seed=1, uniform=True)
    own = embla.Table.create(50, 8)
    embla.Optim(own).step(0.5, st, rows)
    assert np.array_equal(own[rows], -0.5 * st)
    with pytest.raises(embla.UnsupportedError, match="smoothing"):
        embla.loss(t, h, targets, negatives=5, smoothing=0.1)
    with pytest.raises(embla.ArgumentError, match="negatives is"):
        embla.loss(t, h, targets, negatives=2**40, gradients=True)


def test_a_handle_for_one_thread_refuses_a_second_one():
    s = embla.Scatter(1_000_000, 200_000)
    ids = np.random.default_rng(1).integers(0, 1_000_000, 200_000)
    refused, failed = [], []

    def work():
        for _ in range(20):
            try:
                s.plan(ids)
            except embla.BusyError as error:
                refused.append(str(error))
            except Exception as error:  # any other is a fault
                failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failed and all("in use by another call" in text for text in refused)
    assert s.plan([3, 1]).tolist() == [1, 3]
