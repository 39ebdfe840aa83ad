# SPDX-License-Identifier: Apache-2.0
"""Every integer argument with numbers below, at and above its range.

A call works, or it raises an embla.Error. No number is taken for another one.
"""

import os

import numpy as np
import pytest

import embla
from embla import _embla

DEMO = os.path.join(os.path.dirname(embla.__file__), "demo")
V = np.random.default_rng(5).standard_normal((50, 4)).astype(np.float32)
NEGATIVE = [-1, -2, -2**31, -2**63, -2**63 - 1, -10**5000]
MEANT = object()  # -1 means something in this argument
HUGE = [2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64, 10**5000]


class Given:
    """What the calls work with."""

    def __init__(self, folder):
        self.folder = folder
        self.table = embla.Table.of_words([f"w{i}" for i in range(50)], V)
        np.save(folder / "t.npy", V)
        (folder / "text.txt").write_text("the cat sat on the mat\nthe dog sat on the log\n" * 20)
        (folder / "analogies.txt").write_text(": all\nw1 w2 w3 w4\nw5 w6 w7 w8\n")
        self.checkpoint = embla.Checkpoint(folder / "t.npy")
        self.store = embla.Store(folder / "t.npy", "array")
        self.tokenizer = embla.Tokenizer(os.path.join(DEMO, "names"))
        self.encoder = embla.Encoder(os.path.join(DEMO, "words.vec"))
        self.index = embla.Index(self.encoder, ["the cat", "a dog", "the king"])
        self.model = embla.Model(os.path.join(DEMO, "names"))
        self.number = 0

    def new(self, end=""):
        self.number += 1
        return self.folder / f"{self.number}{end}"

    def words(self, **named):
        return embla.words(self.folder / "text.txt", **{"dim": 4, "epochs": 1, "min_count": 1, "threads": 1, **named})

    def train(self, **named):
        stop = named.pop("progress", lambda report: False)
        return embla.train(self.folder / "text.txt", self.new(),
                           **{"preset": "microgpt", "steps": 2, "progress": stop, **named})


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    return Given(tmp_path_factory.mktemp("integers"))


# A call of given (g) and a number (n); then what numbers below 0, 0 and above mean:
#   "error": an embla.Error         "any": works, or is an embla.Error
#   "far": an embla.Error from 2^62 on; a smaller number asks for much memory or work, and is not tried
#   "none": not tried, because it asks for endless work
CALLS = {
    "near top": (lambda g, n: g.table.near("w1", n), "error", "error", "any"),
    "near top of several": (lambda g, n: g.table.near(V[:2], n), "error", "error", "error"),
    "near rows": (lambda g, n: g.table.near("w1", 2, rows=n), "error", "any", "any"),
    "near threads": (lambda g, n: g.table.near("w1", 2, threads=n), "error", "any", "any"),
    "near exclude": (lambda g, n: g.table.near("w1", 2, exclude=n), "any", "any", "any"),
    "near id": (lambda g, n: g.table.near(n), "error", "any", "error"),
    "analogy top": (lambda g, n: g.table.analogy(["w1"], ["w2"], n), "error", "error", "any"),
    "analogy rows": (lambda g, n: g.table.analogy(["w1"], ["w2"], rows=n), "error", "any", "any"),
    "analogy id": (lambda g, n: g.table.analogy([n], ["w2"]), "error", "any", "error"),
    "most_similar topn": (lambda g, n: g.table.most_similar("w1", topn=n), "error", "error", "any"),
    "most_similar restrict_vocab": (lambda g, n: g.table.most_similar("w1", restrict_vocab=n), "error", "any", "any"),
    "similar_by_vector topn": (lambda g, n: g.table.similar_by_vector(V[1], n), "error", "error", "any"),
    "similar_by_word topn": (lambda g, n: g.table.similar_by_word("w1", n), "error", "error", "any"),
    "lookup": (lambda g, n: g.table.lookup(n), "error", "any", "error"),
    "lookup of a list": (lambda g, n: g.table.lookup([n]), "error", "any", "error"),
    "lookup threads": (lambda g, n: g.table.lookup([1], threads=n), "error", "any", "any"),
    "[]": (lambda g, n: g.table[n], "error", "any", "error"),
    "id": (lambda g, n: g.table.id(n), "error", "any", "error"),
    "embed": (lambda g, n: g.table.embed([n]), "error", "any", "error"),
    "embed first": (lambda g, n: g.table.embed([1], g.table, first=n), "error", "any", "error"),
    "a slice of an array": (lambda g, n: embla.Table.create(3, 4).view()[::n or 1, n:], "any", "any", "any"),
    "pool": (lambda g, n: g.table.pool([n]), "error", "any", "error"),
    "write first": (lambda g, n: embla.Table.create(3, 4).write(n, V[:1]), "error", "any", "error"),
    "init seed": (lambda g, n: embla.Table.create(3, 4).init(n), "error", "any", "any"),
    "init threads": (lambda g, n: embla.Table.create(3, 4).init(threads=n), "error", "any", "any"),
    "eval rows": (lambda g, n: g.table.eval(g.folder / "analogies.txt", rows=n), "error", "any", "any"),
    "eval threads": (lambda g, n: g.table.eval(g.folder / "analogies.txt", threads=n), "error", "any", "any"),
    "health tokens": (lambda g, n: g.table.health(tokens=n), "error", "any", "any"),
    "health unused": (lambda g, n: g.table.health(unused=[n]), "error", "any", "error"),
    "health threads": (lambda g, n: g.table.health(threads=n), "error", "any", "any"),
    "spectrum threads": (lambda g, n: g.table.spectrum(threads=n), "error", "any", "any"),
    "plane basis": (lambda g, n: g.table.plane([1, 2, n]), "error", "any", "error"),
    "layout steps": (lambda g, n: g.table.layout(steps=n, progress=lambda *a: False), "error", "any", "any"),
    "layout max_communities": (lambda g, n: g.table.layout(steps=5, max_communities=n), "error", "any", "any"),
    "diff max_rows": (lambda g, n: g.table.diff(g.table, max_rows=n), "error", "any", "any"),
    "diff other": (lambda g, n: _embla.diff(g.table, g.table, other=[n] * 50), "any", "any", "error"),
    "save rows": (lambda g, n: g.table.save(g.new(".npy"), rows=n), "error", "any", "any"),
    "create rows": (lambda g, n: embla.Table.create(n, 4), "error", "error", "any"),
    "create dim": (lambda g, n: embla.Table.create(4, n), "error", "error", "any"),
    "over dim": (lambda g, n: embla.Table.over(V.view(np.uint8), dtype="f32", dim=n), "error", "any", "error"),
    "read offset": (lambda g, n: g.checkpoint.read("array", n), "error", "any", "error"),
    "read bytes": (lambda g, n: MEANT if n == -1 else g.checkpoint.read("array", 0, n), "error", "any", "error"),
    "tie sample": (lambda g, n: embla.Checkpoint(os.path.join(DEMO, "names")).tie(n), "error", "any", "any"),
    "vocab": (lambda g, n: g.table.words[n], "error", "any", "error"),
    "suggest max_words": (lambda g, n: g.table.words.suggest("w", n), "error", "any", "any"),
    "decode": (lambda g, n: g.tokenizer.decode([n]), "error", "any", "any"),
    "tokenize max_tokens": (lambda g, n: g.tokenizer.encode("emma", max_tokens=n), "error", "any", "any"),
    "tokenize threads": (lambda g, n: g.tokenizer.encode(["emma"], threads=n), "error", "any", "any"),
    "encode dim": (lambda g, n: g.encoder.encode("the cat", dim=n), "error", "any", "error"),
    "encode max_tokens": (lambda g, n: g.encoder.encode("the cat", max_tokens=n), "error", "any", "any"),
    "encode threads": (lambda g, n: g.encoder.encode("the cat", threads=n), "error", "any", "any"),
    "fit components": (lambda g, n: g.encoder.fit(g.folder / "text.txt", g.new(), components=n), "any", "any", "any"),
    "fit lines": (lambda g, n: g.encoder.fit(g.folder / "text.txt", g.new(), lines=n), "error", "any", "any"),
    "search top": (lambda g, n: g.index.search("cat", n), "error", "error", "any"),
    "search top of several": (lambda g, n: g.index.search(["cat", "dog"], n), "error", "error", "any"),
    "store layer": (lambda g, n: MEANT if n == -1 else embla.Store(g.checkpoint, layer=n), "error", "any", "error"),
    "store threads": (lambda g, n: embla.Store(g.checkpoint, "array", place="ram", threads=n), "error", "any", "any"),
    "store.lookup": (lambda g, n: g.store.lookup([n]), "error", "any", "error"),
    "store.warm threads": (lambda g, n: g.store.warm(threads=n), "error", "any", "any"),
    "store.verify sample": (lambda g, n: g.store.verify(n), "error", "any", "any"),
    "store.verify seed": (lambda g, n: g.store.verify(3, seed=n), "error", "any", "any"),
    "tickets max_rows": (lambda g, n: g.store.tickets(max_rows=n), "error", "any", "any"),
    "tickets max_bytes": (lambda g, n: g.store.tickets(max_bytes=n), "error", "any", "any"),
    "tickets max_tickets": (lambda g, n: g.store.tickets(max_tickets=n), "error", "any", "any"),
    "tickets hot_bytes": (lambda g, n: g.store.tickets(hot_bytes=n), "error", "any", "any"),
    "submit": (lambda g, n: g.store.tickets().submit([n]).wait(), "error", "any", "error"),
    "ngram layer": (lambda g, n: MEANT if n == -1 else embla.Ngram.model("qwen3.8-flash-next", layer=n),
                    "error", "any", "any"),
    "ngram token": (lambda g, n: embla.Ngram.model("qwen3.8-flash-next").rows([n]), "error", "any", "error"),
    "scatter rows": (lambda g, n: embla.Scatter(n, 4), "error", "any", "any"),
    "scatter capacity": (lambda g, n: embla.Scatter(4, n), "error", "any", "any"),
    "scatter plan": (lambda g, n: embla.Scatter(4, 4).plan([n]), "error", "any", "error"),
    "scatter frozen_below": (lambda g, n: embla.Scatter(4, 4).plan([1], frozen_below=n), "error", "any", "any"),
    "optim frozen_below": (lambda g, n: embla.Optim(embla.Table.create(3, 4), frozen_below=n), "error", "any", "any"),
    "optim rows": (lambda g, n: embla.Optim(embla.Table.create(3, 4)).step(0.1, V[:1], [n]), "error", "any", "error"),
    "optim catch_up": (lambda g, n: embla.Optim(embla.Table.create(3, 4)).catch_up([n]), "error", "any", "error"),
    "optim steps": (lambda g, n: embla.Optim(embla.Table.create(3, 4)).load_state({"steps": n}), "error", "any", "any"),
    "loss negatives": (lambda g, n: embla.loss(g.table, V[:1], [1], negatives=n, gradients=True), "error", "any", "far"),
    "loss seed": (lambda g, n: embla.loss(g.table, V[:1], [1], negatives=3, seed=n), "error", "any", "any"),
    "loss step": (lambda g, n: embla.loss(g.table, V[:1], [1], negatives=3, step=n), "any", "any", "any"),
    "loss targets": (lambda g, n: embla.loss(g.table, V[:1], [n]), "any", "any", "error"),
    "sinusoid count": (lambda g, n: embla.sinusoid(n, 4), "error", "any", "error"),
    "sinusoid dim": (lambda g, n: embla.sinusoid(4, n), "error", "any", "error"),
    "sinusoid first": (lambda g, n: embla.sinusoid(4, 4, first=n), "any", "any", "any"),
    "cost rows": (lambda g, n: embla.cost("gpt2", rows=n), "error", "any", "any"),
    "cost dim": (lambda g, n: embla.cost("gpt2", dim=n), "error", "any", "any"),
    "cost positions": (lambda g, n: embla.cost("gpt2", positions=n), "error", "any", "any"),
    "cost layers": (lambda g, n: embla.cost("gpt2", layers=n), "error", "any", "any"),
    "cost trunk": (lambda g, n: embla.cost("gpt2", trunk=n), "error", "any", "any"),
    "cost ngram_rows": (lambda g, n: embla.cost("gpt2", ngram_rows=n, ngram_dim=4, ngram_rows_per_token=1), "error", "any", "any"),
    "cost ngram_dim": (lambda g, n: embla.cost("gpt2", ngram_rows=4, ngram_dim=n, ngram_rows_per_token=1), "error", "any", "any"),
    "cost ngram_rows_per_token": (lambda g, n: embla.cost("gpt2", ngram_rows=4, ngram_dim=4, ngram_rows_per_token=n), "error", "any", "any"),
    "generate count": (lambda g, n: g.model.generate(count=n), "error", "any", "none"),
    "generate tokens": (lambda g, n: g.model.generate(tokens=n), "error", "any", "none"),
    "generate top_k": (lambda g, n: g.model.generate(tokens=3, top_k=n), "error", "any", "any"),
    "generate seed": (lambda g, n: g.model.generate(tokens=3, seed=n), "error", "any", "any"),
    "generate prompt": (lambda g, n: g.model.generate([n], tokens=3), "error", "any", "error"),
    "generate threads": (lambda g, n: g.model.generate(tokens=3, threads=n), "error", "any", "any"),
    "predict top": (lambda g, n: g.model.predict("em", n), "error", "any", "any"),
    "predict text": (lambda g, n: g.model.predict([n]), "error", "any", "error"),
    "predict threads": (lambda g, n: g.model.predict("em", threads=n), "error", "any", "any"),
    "words dim": (lambda g, n: g.words(dim=n), "error", "any", "far"),
    "words window": (lambda g, n: g.words(window=n), "error", "any", "any"),
    "words negatives": (lambda g, n: g.words(negatives=n), "error", "any", "any"),
    "words epochs": (lambda g, n: g.words(epochs=n, progress=lambda *a: False), "error", "any", "any"),
    "words min_count": (lambda g, n: g.words(min_count=n), "error", "any", "any"),
    "words max_words": (lambda g, n: g.words(max_words=n), "error", "any", "any"),
    "words min_gram": (lambda g, n: g.words(min_gram=n, max_gram=4, buckets=10), "error", "any", "any"),
    "words max_gram": (lambda g, n: g.words(min_gram=3, max_gram=n, buckets=10), "error", "any", "any"),
    "words buckets": (lambda g, n: g.words(min_gram=3, max_gram=4, buckets=n), "error", "any", "far"),
    "words seed": (lambda g, n: g.words(seed=n), "error", "any", "any"),
    "words threads": (lambda g, n: g.words(threads=n), "error", "any", "any"),
    "train dim": (lambda g, n: g.train(dim=n), "error", "any", "far"),
    "train layers": (lambda g, n: g.train(layers=n), "error", "any", "far"),
    "train heads": (lambda g, n: g.train(heads=n), "error", "any", "far"),
    "train batch": (lambda g, n: g.train(batch=n), "error", "any", "far"),
    "train length": (lambda g, n: g.train(length=n), "error", "any", "far"),
    "train steps": (lambda g, n: g.train(steps=n), "error", "any", "any"),
    "train warm_up": (lambda g, n: g.train(warm_up=n), "error", "any", "any"),
    "train words": (lambda g, n: g.train(unit="words", words=n), "error", "any", "any"),
    "train save_every": (lambda g, n: g.train(save_every=n), "error", "any", "any"),
    "train keep": (lambda g, n: g.train(keep=n), "error", "any", "any"),
    "train seed": (lambda g, n: g.train(seed=n), "error", "any", "any"),
    "train threads": (lambda g, n: g.train(threads=n), "error", "any", "any"),
}


def attempt(call, given, number):
    """True if the call works, False after an embla.Error; any other exception is a fault."""
    try:
        return call(given, number) is not MEANT
    except embla.Error as error:
        assert len(str(error)) < 1000
        return False


@pytest.mark.parametrize("name", CALLS)
def test_an_integer_works_or_is_an_error_of_embla(name, given):
    call, below, zero, above = CALLS[name]
    tried = {"none": [], "far": [n for n in HUGE if n >= 2**62]}.get(above, HUGE)
    for numbers, wanted in ((NEGATIVE, below), ([0], zero), (tried, above)):
        for number in numbers:
            worked = attempt(call, given, number)
            assert wanted == "any" or not worked, f"{number} was accepted"


@pytest.mark.parametrize("number", [1.5, "3", None, [], b"1"])
def test_what_is_no_integer_is_a_type_error_with_the_name(number, given):
    if number is not None:
        with pytest.raises(TypeError, match="top must be an integer, not <class"):
            given.table.near("w1", number)
        with pytest.raises(TypeError, match="seed must be an integer, not <class"):
            embla.Table.create(3, 4).init(number)


def test_messages_of_integers(given):
    with pytest.raises(embla.ArgumentError, match="top is -1; it must be between 0 and 9223372036854775807"):
        given.table.near("w1", -1)
    with pytest.raises(embla.ArgumentError, match="top is a number of more than 60 digits; it must be"):
        given.table.near("w1", 10**5000)
    with pytest.raises(embla.ArgumentError, match="seed is -1; it must be between 0 and 18446744073709551615"):
        embla.Table.create(3, 4).init(-1)
    with pytest.raises(embla.ArgumentError, match="temperature is an integer that is too large for a float"):
        given.model.generate(temperature=10**400)
