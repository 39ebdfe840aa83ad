# SPDX-License-Identifier: Apache-2.0
"""Words and rows of a table, and what rows mean: nearest rows, analogies, scores."""

from __future__ import annotations

import html
import operator
import os
import re
import tempfile
from numbers import Integral
from typing import (TYPE_CHECKING, Any, Iterable, Iterator, Literal, NamedTuple, Sequence, TypeVar,
                    overload)

from . import _embla
from ._bar import Shown, shown
from ._errors import ArgumentError, NotFoundError, RangeError, UnsupportedError
from ._hints import named
from ._types import DLPack, Eval, Path, Word

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

    from ._table import Checkpoint
    from ._types import (AnyRank, Doubles, Floats, FloatsLike, Ids, IdsLike, Matrix, MatrixLike, Vector,
                         VectorLike)

D = TypeVar("D")
W = TypeVar("W", str, bytes, int)


class Hit(NamedTuple):
    """One of the nearest rows: its word (None if it has none), its row number, its score."""

    word: str | None
    id: int
    score: float


class Hits(list[Hit]):
    """The nearest rows, nearest first. A notebook shows them as a table."""

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(str(h.word if h.word is not None else h.id))}</td>"
            f"<td>{h.id}</td><td>{h.score:.4f}</td></tr>"
            for h in self
        )
        return f"<table><tr><th>word</th><th>id</th><th>score</th></tr>{rows}</table>"


class Comparison(NamedTuple):
    """How two vectors compare: cosine, dot product, Euclidean distance."""

    cosine: float
    dot: float
    distance: float


class Vocab(_embla.Vocab):
    """The words that rows stand for.

    ``vocab["king"]`` is the token of a word, ``vocab[281]`` the word of a token,
    ``vocab[:3]`` the words of the first three tokens.
    """

    _source: Any = None  # a path or a Checkpoint; None means words in memory

    def __new__(cls, source: Path | Checkpoint) -> Self:
        self = super().__new__(cls, source)
        self._source = os.path.abspath(source) if isinstance(source, (str, os.PathLike)) else source
        return self

    @classmethod
    def of(cls, words: Iterable[str]) -> Self:
        """A vocabulary of these words; a word's token is its index."""
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8", newline="\n",
                                         errors="surrogateescape") as file:
            for word in words:
                if not word or "\n" in word or "\r" in word:
                    raise ArgumentError(f"a word must be one line and not empty, not {word!r}")
                file.write(word + "\n")
            file.flush()
            self = cls(file.name)
        self._source = None
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._source is None:
            return type(self).of, (self.list(),)
        return type(self), (self._source,)

    @overload
    def __getitem__(self, key: str | bytes) -> int: ...
    @overload
    def __getitem__(self, key: int) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> list[str | None]: ...
    def __getitem__(self, key: str | bytes | int | slice) -> int | str | list[str | None]:
        if isinstance(key, (str, bytes)):
            token = self.find(key)
            if token is None:
                raise _unknown(self, key)
            return token
        if isinstance(key, slice):
            return [self.word(token) for token in range(*key.indices(self.end))]
        word = self.word(key)
        if word is None:
            raise NotFoundError(f"token {_digits(key)} has no word; the highest token is {self.end - 1}")
        return word

    @overload
    def get(self, key: str | bytes) -> int | None: ...
    @overload
    def get(self, key: str | bytes, default: D) -> int | D: ...
    def get(self, key: str | bytes, default: Any = None) -> Any:
        """The token of a word, or default."""
        token = self.find(key)
        return default if token is None else token

    def __iter__(self) -> Iterator[str]:
        return (word for word in self.list() if word is not None)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __repr__(self) -> str:
        source = "memory" if self._source is None else repr(self.source)
        return f"<embla.Vocab of {len(self):,} words from {source}>"


def _unknown(words: Vocab, word: str | bytes) -> NotFoundError:
    text = word.decode("utf-8", "replace") if isinstance(word, bytes) else word
    near = words.suggest(word, 3)
    hint = f"; similar words are: {', '.join(near)}" if near else ""
    return NotFoundError(f"'{text}' is not in the vocabulary{hint}")


@named
class Rows(_embla.Table):
    """Rows by words and by numbers; the base of Table."""

    checkpoint: Checkpoint | None = None
    _words: Vocab | None = None
    _asked: bool = False
    _subwords: _embla.Subwords | Literal[False] | None = None  # False means that there are none

    # ---- words ----

    @property
    def words(self) -> Vocab | None:
        """The words of the rows; None if there are none."""
        if not self._asked:
            self._asked = True
            self._words = self.checkpoint.words() if self.checkpoint is not None else None
        return self._words

    def _vocab(self) -> Vocab:
        words = self.words
        if words is None:
            raise UnsupportedError("this table has no words; use row numbers")
        return words

    def id(self, word: Word) -> int:
        """The token of a word; an int is checked and returned."""
        if isinstance(word, (str, bytes)):
            return self._vocab()[word]
        token = operator.index(word)
        if not 0 <= token < self.tokens:
            raise RangeError(f"token {_digits(token)} is out of range: the table has {self.tokens} tokens")
        return token

    def ids(self, words: Iterable[Word]) -> list[int]:
        """The tokens of several words."""
        return [self.id(w) for w in words]

    def word(self, token: int) -> str | None:
        """The word of a token; None if it has none."""
        words = self.words
        return None if words is None else words.word(token)

    # ---- rows ----

    def __len__(self) -> int:
        return self.tokens

    def __contains__(self, word: object) -> bool:
        if isinstance(word, (str, bytes)):
            words = self.words
            return words is not None and words.find(word) is not None
        return isinstance(word, Integral) and 0 <= operator.index(word) < self.tokens

    @overload
    def __getitem__(self, key: Word) -> Vector: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(self, key: slice | Sequence[Word]) -> Matrix: ...
    @overload
    def __getitem__(self, key: IdsLike) -> Floats: ...
    def __getitem__(self, key: Any) -> Floats:
        """``t["king"]``, ``t[281]``: a vector. ``t[["king", "man"]]``, ``t[ids]``: vectors."""
        if isinstance(key, (str, bytes)):
            return self.lookup(self.id(key))
        if isinstance(key, slice):
            return self.lookup(list(range(*key.indices(self.tokens))))
        if isinstance(key, (list, tuple)) and any(isinstance(k, (str, bytes)) for k in key):
            return self.lookup(self.ids(key))
        return self.lookup(key)

    @overload
    def get(self, word: Word) -> Vector | None: ...
    @overload
    def get(self, word: Word, default: D) -> Vector | D: ...
    def get(self, word: Word, default: Any = None) -> Any:
        """The vector of a word, or default if there is none."""
        return self[word] if word in self else default

    def vector(self, word: str) -> Vector:
        """The vector of a word; for an unknown one the mean of its character n-grams' rows.

        Needs a table with n-grams (fastText, ``embla.words(min_gram=3)``) for unknown words.
        """
        if word in self:
            return self[word]
        if self._subwords is None and self.checkpoint is not None:
            try:
                self._subwords = _embla.Subwords(self.checkpoint)
            except NotFoundError:
                self._subwords = False
        if not self._subwords:
            raise _unknown(self._vocab(), word)
        return self._subwords.vector(word)

    def _ipython_key_completions_(self) -> list[str]:
        words = self.words
        return [] if words is None else list(words)

    # ---- what rows mean ----

    def _query(self, query: Any) -> tuple[Any, list[int]]:
        """A vector or vectors, and the rows to leave out."""
        if isinstance(query, (str, bytes)) or isinstance(query, Integral) and not isinstance(query, bool):
            token = self.id(query)  # type: ignore[arg-type]
            return self.lookup(token), [token]
        return query, []

    def _hits(self, ids: Any, scores: Any) -> Hits:
        return Hits(Hit(self.word(i), i, s) for i, s in zip(ids.tolist(), scores.tolist()) if i >= 0)

    @overload
    def near(self, query: AnyRank, top: int = 10, *, measure: str = "cosine", rows: int = 0,
             exclude: IdsLike | None = None, threads: int = 0,
             progress: Shown = None) -> Hits | tuple[Ids, Doubles]: ...
    @overload
    def near(self, query: Word | VectorLike, top: int = 10, *, measure: str = "cosine", rows: int = 0,
             exclude: IdsLike | None = None, threads: int = 0, progress: Shown = None) -> Hits: ...
    @overload
    def near(self, query: MatrixLike, top: int = 10, *, measure: str = "cosine", rows: int = 0,
             exclude: IdsLike | None = None, threads: int = 0,
             progress: Shown = None) -> tuple[Ids, Doubles]: ...
    @overload
    def near(self, query: Buffer | DLPack, top: int = 10, *, measure: str = "cosine", rows: int = 0,
             exclude: IdsLike | None = None, threads: int = 0,
             progress: Shown = None) -> Hits | tuple[Ids, Doubles]: ...
    def near(self, query: Any, top: int = 10, *, measure: str = "cosine", rows: int = 0,
             exclude: IdsLike | None = None, threads: int = 0,
             progress: Shown = None) -> Hits | tuple[Ids, Doubles]:
        """The rows nearest to a word, a row number, or vectors.

        For a word or a row number, and for one vector: a list of hits. For vectors
        (n, dim): row numbers (n, top) and scores (n, top).
        """
        vectors, left = self._query(query)
        if exclude is None:
            exclude = left or None
        ids, scores = _embla.near(self, vectors, top, measure=measure, rows=rows,
                                  exclude=exclude, threads=threads, progress=progress)
        if left or len(ids.shape) == 1:
            return self._hits(ids, scores)
        return ids, scores

    def analogy(self, plus: str | bytes | Iterable[Word], minus: str | bytes | Iterable[Word] = (),
                top: int = 10, *, kind: str = "add", rows: int = 0, keep_words: bool = False,
                threads: int = 0) -> Hits:
        """The rows that answer plus[0] + plus[1] - minus[0]: king + woman - man.

        plus may be the whole question, as the program takes it: "king - man + woman".
        """
        added: Iterable[Word] = _listed(plus)
        taken: Iterable[Word] = _listed(minus)
        if isinstance(plus, str):
            added, less = _question(plus)
            taken = [*less, *taken]
        ids, scores = _embla.analogy(self, self.ids(added), self.ids(taken), top, kind=kind,
                                     rows=rows, keep_words=keep_words, threads=threads)
        return self._hits(ids, scores)

    def compare(self, a: Word | FloatsLike, b: Word | FloatsLike) -> Comparison:
        """Cosine, dot product and distance of two words, rows or vectors."""
        return Comparison(*_embla.compare(self._query(a)[0], self._query(b)[0]))

    def similarity(self, a: Word | FloatsLike, b: Word | FloatsLike) -> float:
        """The cosine of two words, rows or vectors."""
        return self.compare(a, b).cosine

    def doesnt_match(self, words: Sequence[W]) -> W:
        """The word that fits the others least."""
        index, _ = _embla.odd(self, self.ids(words))
        return words[index]

    def eval(self, path: Path, *, pairs: bool | None = None, rows: int = 0,
             exact_case: bool = False, kind: str = "add", threads: int = 0,
             progress: Shown = None) -> Eval:
        """Scores the table on a file of analogies or of pairs of words.

        The result has "parts" (asked, covered, correct or spearman and pearson)
        and "missing", how often a word without a row occurs.
        """
        vocab = self._vocab()
        with shown(progress) as step:
            if pairs is None:
                try:
                    return _embla.eval(self, vocab, path, False, rows=rows, exact_case=exact_case,
                                       kind=kind, threads=threads, progress=step)
                except UnsupportedError:
                    pairs = True  # the library says that this is a file of pairs
            return _embla.eval(self, vocab, path, pairs, rows=rows, exact_case=exact_case, kind=kind,
                               threads=threads, progress=step)


def _listed(words: str | bytes | Iterable[Word]) -> Iterable[Word]:
    """A single word is a list of one word."""
    return [words] if isinstance(words, (str, bytes)) else words


def _question(text: str) -> tuple[list[str], list[str]]:
    """The words of "king - man + woman" that are added, and those that are subtracted."""
    first, *rest = re.split(r" ([+-]) ", text.strip())
    signs = list(zip(rest[::2], rest[1::2]))
    return ([first] + [word for sign, word in signs if sign == "+"],
            [word for sign, word in signs if sign == "-"])


def _digits(number: int) -> str:
    """A number for a message. Python refuses to print one of thousands of digits."""
    return str(number) if -2**63 <= number < 2**64 else "of more than 64 bits"
