# SPDX-License-Identifier: Apache-2.0
"""Names of a table that users of gensim and PyTorch know. Some of them need NumPy."""

from __future__ import annotations

import array
import math
from typing import TYPE_CHECKING, Any, Iterable, Sequence, TypedDict, Union

from . import _embla
from ._errors import ArgumentError, NotFoundError
from ._hints import named
from ._rows import Rows
from ._types import Path, Word

if TYPE_CHECKING:
    from ._types import Floats, FloatsLike, Vector

    Similar = list[tuple[Union[str, int], float]]
    Keys = Union[Word, Sequence[Word], None]


class Section(TypedDict):
    """One part of a file of analogies: how many were answered correctly, and how many not."""

    section: str | None
    correct: int
    incorrect: int


def _listed(keys: Keys) -> list[Word]:
    return [keys] if isinstance(keys, (str, bytes, int)) else list(keys or [])


@named
class Keyed(Rows):
    """gensim's and PyTorch's names; the base of Table."""

    # ---- PyTorch ----

    @property
    def embedding_dim(self) -> int:
        """dim (PyTorch)."""
        return self.dim

    @property
    def num_embeddings(self) -> int:
        """rows (PyTorch)."""
        return self.rows

    # ---- gensim: what there is ----

    @property
    def vector_size(self) -> int:
        """dim (gensim)."""
        return self.dim

    @property
    def index_to_key(self) -> list[str | None]:
        """The word of each token (gensim)."""
        return self._vocab().list()

    @property
    def key_to_index(self) -> dict[str, int]:
        """The token of each word (gensim)."""
        return {w: i for i, w in enumerate(self._vocab().list()) if w is not None}

    @property
    def vectors(self) -> Floats:
        """All rows as floats (gensim). A table of f32 is not copied."""
        if self.dtype != "f32":
            return self.lookup(array.array("q", range(self.rows)), by_row=True)
        import numpy

        return numpy.asarray(self.view())

    def get_index(self, key: Word, default: int | None = None) -> int | None:
        """The token of a word; for an unknown one default, or a KeyError if it is None (gensim)."""
        return self.id(key) if default is None or key in self else default

    def has_index_for(self, key: Word) -> bool:
        """Whether there is a row for a word (gensim)."""
        return key in self

    def get_vector(self, word: Word, norm: bool = False) -> Vector:
        """The vector of a word, divided by its norm on request (gensim)."""
        vector = self[word]
        if not norm:
            return vector
        length = _embla.compare(vector, vector)[1] ** 0.5
        return vector / length if length > 0 else vector

    def get_mean_vector(self, keys: Iterable[Word | Vector], weights: Iterable[float] | None = None,
                        pre_normalize: bool = True, post_normalize: bool = False,
                        ignore_missing: bool = True) -> Vector:
        """The weighted mean of the vectors of words (gensim). A key may also be a vector."""
        import numpy

        asked = list(keys)
        given = [1.0] * len(asked) if weights is None else list(weights)
        if len(given) != len(asked):
            raise ArgumentError(f"there are {len(asked)} words, but {len(given)} weights")
        known = [(k, w) for k, w in zip(asked, given)
                 if not isinstance(k, (str, bytes, int)) or k in self]
        if not ignore_missing and len(known) < len(asked):
            self.ids(k for k in asked if isinstance(k, (str, bytes, int)))  # names the missing one
        if not known:
            raise NotFoundError(f"none of the {len(asked)} words is in the vocabulary")
        rows = [self.get_vector(k, pre_normalize) if isinstance(k, (str, bytes, int)) else k
                for k, _ in known]
        shares = numpy.array([w for _, w in known], numpy.float32)
        mean = shares @ numpy.array(rows) / max(numpy.abs(shares).sum(), 1e-30)
        length = float(numpy.linalg.norm(mean)) if post_normalize else 0.0
        result: Vector = (mean / length if length > 0 else mean).astype(numpy.float32)
        return result

    # ---- gensim: what is similar ----

    def most_similar(self, positive: Keys = None, negative: Keys = None, topn: int = 10,
                     restrict_vocab: int | None = None) -> Similar:
        """The nearest words and their cosines (gensim)."""
        plus, minus = _listed(positive), _listed(negative)
        if len(plus) == 1 and not minus:
            token = self.id(plus[0])
            found = _embla.near(self, self.lookup(token), topn, rows=restrict_vocab or 0,
                                exclude=token)
        else:
            found = _embla.analogy(self, self.ids(plus), self.ids(minus), topn,
                                   rows=restrict_vocab or 0)
        return self._pairs(*found)

    def most_similar_cosmul(self, positive: Keys = None, negative: Keys = None, topn: int = 10,
                            restrict_vocab: int | None = None) -> Similar:
        """The words with the largest product of similarities, 3CosMul (gensim)."""
        return self._pairs(*_embla.analogy(self, self.ids(_listed(positive)), self.ids(_listed(negative)),
                                           topn, kind="multiply", rows=restrict_vocab or 0))

    def _pairs(self, ids: Any, scores: Any) -> Similar:
        pairs = zip(ids.tolist(), scores.tolist())
        words = self.words
        if words is None:
            return [(i, score) for i, score in pairs if i >= 0]
        word = words.word
        return [(i if (name := word(i)) is None else name, score) for i, score in pairs if i >= 0]

    def similar_by_vector(self, vector: FloatsLike, topn: int = 10) -> Similar:
        """The words nearest to a vector and their cosines (gensim)."""
        return self._pairs(*_embla.near(self, vector, topn))

    def similar_by_word(self, word: Word, topn: int = 10) -> Similar:
        """The words nearest to a word and their cosines (gensim)."""
        return self.most_similar([word], topn=topn)

    similar_by_key = similar_by_word

    def n_similarity(self, a: Iterable[Word], b: Iterable[Word]) -> float:
        """The cosine of the means of two sets of words (gensim)."""
        return self.similarity(self.pool(self.ids(a)), self.pool(self.ids(b)))

    def distance(self, a: Word, b: Word) -> float:
        """1 minus the cosine of two words (gensim). ``compare(a, b).distance`` is Euclidean."""
        return 1 - self.similarity(a, b)

    def distances(self, word: Word | Vector, other_words: Iterable[Word] = ()) -> Floats:
        """1 minus the cosine of a word, or of a vector, with other words or with all (gensim)."""
        import numpy

        one: Any = self[word] if isinstance(word, (str, bytes, int)) else word
        others = self.ids(other_words)
        rows = self.lookup(others) if others else self.vectors
        cosines: Floats = rows @ one / (numpy.linalg.norm(one) * numpy.linalg.norm(rows, axis=1))
        return 1 - cosines

    def closer_than(self, a: Word, b: Word) -> list[str | int]:
        """The words that are closer to a than b is, by token (gensim)."""
        far = self.distances(a)
        own, limit = self.id(a), far[self.id(b)]
        found = (i for i in (far < limit).nonzero()[0].tolist() if i != own)
        return [i if (name := self.word(i)) is None else name for i in found]

    def rank(self, a: Word, b: Word) -> int:
        """The place of b among the words nearest to a, from 1 (gensim)."""
        return len(self.closer_than(a, b)) + 1

    # ---- gensim: scores and files ----

    def evaluate_word_analogies(self, analogies: Path, restrict_vocab: int = 300000,
                                case_insensitive: bool = True,
                                dummy4unknown: bool = False) -> tuple[float, list[Section]]:
        """The share of analogies that were answered correctly, and counts of each part (gensim).

        gensim's sections have the analogies themselves.
        """
        parts = self.eval(analogies, pairs=False, rows=min(restrict_vocab, self.rows),
                          exact_case=not case_insensitive)["parts"]
        asked = sum(p["asked"] if dummy4unknown else p["covered"] for p in parts)
        sections = [Section(section=p["name"], correct=p["correct"],
                            incorrect=(p["asked"] if dummy4unknown else p["covered"]) - p["correct"])
                    for p in parts]
        return (sum(p["correct"] for p in parts) / asked if asked else 0.0), sections

    def evaluate_word_pairs(self, pairs: Path, restrict_vocab: int = 300000,
                            case_insensitive: bool = True,
                            ) -> tuple[tuple[float, float], tuple[float, float], float]:
        """Pearson's and Spearman's correlations, each with its p-value, and the share of pairs
        without rows in percent (gensim)."""
        (part,) = self.eval(pairs, pairs=True, rows=min(restrict_vocab, self.rows),
                            exact_case=not case_insensitive)["parts"]
        pearson, spearman, covered = part["pearson"], part["spearman"], part["covered"]
        missing = 100 * (part["asked"] - covered) / part["asked"]
        return (pearson, _chance(pearson, covered)), (spearman, _chance(spearman, covered)), missing


def _chance(r: float, count: int) -> float:
    """The two-sided p-value of a correlation of count pairs (Student's t).

    It is the regularized incomplete beta function of 1 - r^2 for (count / 2 - 1, 1 / 2).
    """
    if count < 3 or not abs(r) < 1:
        return 0.0 if count >= 3 and abs(r) == 1 else math.nan
    a, x = count / 2 - 1, 1 - r * r
    if x > (a + 1) / (a + 2.5):
        return 1 - _beta(1 - x, 0.5, a)
    return _beta(x, a, 0.5)


def _beta(x: float, a: float, b: float) -> float:
    """The regularized incomplete beta function, by its power series, for x that is not near 1."""
    front = math.exp(math.lgamma(a + b) - math.lgamma(a + 1) - math.lgamma(b)
                     + a * math.log(x) + b * math.log1p(-x)) if x > 0 else 0.0
    total = term = 1.0
    for n in range(100_000):
        term *= (a + b + n) / (a + 1 + n) * x
        total += term
        if term < 1e-17 * total:
            break
    return front * total
