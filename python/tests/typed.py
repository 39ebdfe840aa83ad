# SPDX-License-Identifier: Apache-2.0
"""Calls and the types that a checker must give them. test_types.py reads this; it never runs."""

from typing import Any, Union

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import embla
from embla._types import Doubles, Floats, Ids, Labels, Matrix, Vector

t = embla.open("words.vec")
assert_type(t, embla.Table)
assert_type(t["cat"], Vector)
assert_type(t[3], Vector)
assert_type(t[["cat", "dog"]], Matrix)
assert_type(t[:3], Matrix)
assert_type(t[np.array([[1, 2]])], Floats)
assert_type(t.get("cat"), Union[Vector, None])
assert_type(t.get("cat", 7), Union[Vector, int])
assert_type(t.vector("cat"), Vector)
assert_type(t.words, Union[embla.Vocab, None])
if t.words is not None:
    assert_type(t.words["cat"], int)
    assert_type(t.words[3], str)
    assert_type(t.words[:3], list[Union[str, None]])

assert_type(t.lookup(3), Vector)
assert_type(t.lookup([1, 2]), Matrix)
assert_type(t.lookup([[1, 2]]), Floats)
assert_type(t.lookup(np.array([1, 2])), Floats)
assert_type(t.lookup([1], dtype="f16"), NDArray[np.float16])
assert_type(t.lookup([1], dtype="bf16"), embla.Array)
buffer = np.empty((2, 32), np.float32)
assert_type(t.lookup([1, 2], out=buffer), Matrix)
assert_type(t.embed([1, 2]), Floats)
assert_type(t.pool([1, 2]), Floats)
assert_type(t.vectors, Floats)

assert_type(t.near("cat"), embla.Hits)
assert_type(t.near(3), embla.Hits)
assert_type(t.near(t["cat"]), embla.Hits)
assert_type(t.near([0.5, 0.25]), embla.Hits)
assert_type(t.near(t[["cat", "dog"]]), tuple[Ids, Doubles])
assert_type(t.near(buffer), tuple[Ids, Doubles])
assert_type(t.near("cat")[0].word, Union[str, None])


def of_any_shape(x: NDArray[np.float32]) -> None:
    assert_type(t.near(x), Union[embla.Hits, tuple[Ids, Doubles]])


assert_type(t.analogy(["king", "woman"], ["man"])[0].score, float)
assert_type(t.similarity("cat", t["dog"]), float)
assert_type(t.doesnt_match(["cat", "dog"]), str)
assert_type(t.most_similar("cat"), list[tuple[Union[str, int], float]])
assert_type(t.distances("cat"), Floats)
assert_type(t.rank("cat", "dog"), int)
assert_type(t.eval("analogies.txt")["parts"][0]["correct"], int)
assert_type(t.health()["norm_mean"], float)
assert_type(t.health()["zero"], Ids)
assert_type(t.spectrum()["effective_rank"], float)
assert_type(t.layout().labels, Labels)
assert_type(t.diff(t)["changes"][0]["cosine"], float)
assert_type(t.save("x.gguf").lines[0]["rounded"], int)
assert_type(embla.Table.create(3, 4), embla.Table)
assert_type(embla.Table.over(buffer), embla.Table)
assert_type(embla.Table.of_words(["a"], buffer), embla.Table)
assert_type(embla.Checkpoint("x").tensors()[0]["shape"], tuple[int, ...])
assert_type(embla.Checkpoint("x").facts()["architecture"], Union[str, None])

m = embla.Encoder("model")
assert_type(m.encode("a"), Vector)
assert_type(m.encode(["a", "b"]), Matrix)
assert_type(m.encode(["a", "b"], out=buffer), Matrix)
assert_type(m.info()["dim"], int)
k = embla.Tokenizer("model")
assert_type(k.encode("a"), list[int])
assert_type(k.encode(["a"]), list[list[int]])
assert_type(k.encode(["a"], arrays=True), tuple[Labels, Ids])
assert_type(k.encode("a", offsets=True), tuple[list[int], list[tuple[int, int]]])
assert_type(k.stream(), embla.Detokenizer)
assert_type(k.stream().add(3) + k.stream().add([3, 4]) + k.stream().end(), str)
index = embla.Index(m, ["a"])
assert_type(index.search("a"), list[embla.Found])
assert_type(index.search(["a"]), list[list[embla.Found]])

assert_type(embla.words("x", dim=3), embla.Table)
assert_type(embla.train("x", "y", rate=0.1).model, embla.Model)
assert_type(embla.Model("x").generate(), list[str])
assert_type(embla.Model("x").predict("a", top=3), embla.Predictions)
assert_type(embla.Model("x").predict()[0].probability, float)
assert_type(embla.Ngram.model("x").rows([1, 2]), Ids)
with embla.Store("x") as store:
    assert_type(store, embla.Store)
    assert_type(store.lookup([[1]]), Floats)
    assert_type(store.info()["resident"], int)
    assert_type(store.tickets().submit([1]).wait(), Floats)
assert_type(embla.loss(t, buffer, [1, 2]), float)
assert_type(embla.loss(t, buffer, [1, 2], gradients=True), tuple[float, Floats, Floats])
assert_type(embla.loss(t, buffer, [1, 2], negatives=3), float)
assert_type(embla.loss(t, buffer, [1, 2], gradients=True, negatives=3), tuple[float, Floats, Ids, Floats])
assert_type(embla.cost("gpt2")["total"], tuple[int, int])
unused: Any = None
