# SPDX-License-Identifier: Apache-2.0
"""Tables of embeddings: open, look up, compare, study, convert."""

from __future__ import annotations

import html
import operator
import os
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence, Union

from . import _embla
from ._errors import ArgumentError, NotFoundError, UnsupportedError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Doubles = NDArray[np.float64]
    Ids = NDArray[np.int64]

Path = Union[str, "os.PathLike[str]"]
Word = Union[str, bytes, int]
Progress = Callable[[str, int, int], Any]


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


class Points(NamedTuple):
    """Every row as a point: places (rows, 2), the cluster of each row, and the clusters.

    A cluster is (number of rows, its central rows). A label of -1 means no cluster.
    """

    xy: Floats
    labels: Any
    clusters: list[tuple[int, Ids]]


class Account(NamedTuple):
    """What a conversion did: the new format and its bytes, a line for each tensor, notes."""

    format: str
    bytes: int
    lines: list[dict[str, Any]]
    notes: list[str]

    @property
    def rows(self) -> int:
        """Rows of the tables that were written."""
        return sum(int(line["new_rows"]) for line in self.lines if line["table"])

    @property
    def same(self) -> int:
        """Rows with the same numbers, bit for bit."""
        return sum(int(line["same"]) for line in self.lines if line["table"])

    @property
    def rounded(self) -> int:
        """Rows that were rounded to the new dtype."""
        return sum(int(line["rounded"]) for line in self.lines if line["table"])


def _account(data: Mapping[str, Any]) -> Account:
    return Account(data["format"], data["bytes"], data["lines"], data["notes"])


class Checkpoint(_embla.Checkpoint):
    """A file or a model's folder, and the tensors in it.

    >>> c = Checkpoint("demo/words.safetensors")          # doctest: +SKIP
    >>> [t["name"] for t in c.tensors()]                  # doctest: +SKIP
    """

    path: str

    def __new__(cls, path: Path, *, lenient: bool = False, copy: bool = False,
                npy_dtype: str | None = None) -> Checkpoint:
        self = super().__new__(cls, path, lenient=lenient, copy=copy, npy_dtype=npy_dtype)
        self.path = os.fspath(path)
        return self

    def words(self) -> Vocab | None:
        """The words of the token table; None if the checkpoint has none."""
        try:
            return Vocab(self)
        except NotFoundError:
            return None

    def table(self, tensor: str | None = None, *, by_row: bool = False) -> Table:
        """The token table, or the tensor with this name."""
        return Table._of(self, tensor, by_row)

    def save(self, path: Path, *, format: str | None = None, dtype: str | None = None,
             rows: int = 0, tables_only: bool = False, overwrite: bool = False,
             progress: Progress | None = None) -> Account:
        """Writes the checkpoint to another file; returns the account of every row."""
        return _account(self.convert(path, format=format, dtype=dtype, rows=rows,
                                     tables_only=tables_only, overwrite=overwrite,
                                     progress=progress))

    def __repr__(self) -> str:
        return f"<embla.Checkpoint {self.path!r}: {self.format}, {len(self.tensors())} tensors>"


class Vocab(_embla.Vocab):
    """The words that rows stand for.

    ``vocab["king"]`` is the token of a word, ``vocab[281]`` the word of a token.
    """

    def __getitem__(self, key: str | bytes | int) -> Any:
        if isinstance(key, (str, bytes)):
            token = self.find(key)
            if token is None:
                raise _unknown(self, key)
            return token
        word = self.word(key)
        if word is None:
            raise NotFoundError(f"token {key} has no word; the highest token is {self.end - 1}")
        return word

    def get(self, key: str, default: Any = None) -> Any:
        """The token of a word, or default."""
        token = self.find(key)
        return default if token is None else token

    def __iter__(self) -> Iterator[str]:
        return (word for word in self.list() if word is not None)

    def __repr__(self) -> str:
        return f"<embla.Vocab of {len(self):,} words from {self.source!r}>"


def _unknown(words: Vocab, word: Any) -> NotFoundError:
    text = word.decode("utf-8", "replace") if isinstance(word, bytes) else word
    near = words.suggest(word, 3)
    hint = f"; similar words are: {', '.join(near)}" if near else ""
    return NotFoundError(f"'{text}' is not in the vocabulary{hint}")


class Table(_embla.Table):
    """Rows x dim numbers of one dtype, with the words of its rows if it has them.

    Open one with :func:`embla.open`, make one with ``Table.create`` or use an
    array with ``Table.over`` or ``Table.of_words``.
    """

    checkpoint: Checkpoint | None = None
    _words: Vocab | None = None
    _asked: bool = False
    _subwords: Any = None

    def __new__(cls, path: Path, tensor: str | None = None, *, lenient: bool = False,
                copy: bool = False, by_row: bool = False) -> Table:
        return cls._of(Checkpoint(path, lenient=lenient, copy=copy), tensor, by_row)

    @classmethod
    def _of(cls, checkpoint: Checkpoint, tensor: str | None = None, by_row: bool = False) -> Table:
        self = cls._open(checkpoint, tensor, by_row=by_row)
        self.checkpoint = checkpoint
        if tensor is not None:
            self._asked = True  # the words belong to the token table
        return self

    @classmethod
    def of_words(cls, words: Sequence[str], vectors: Any, *, dtype: str = "f32") -> Table:
        """A table of words and their vectors (rows, dim), copied."""
        shape: tuple[int, ...] = tuple(
            vectors.shape if hasattr(vectors, "shape") else memoryview(vectors).shape or ())
        if len(shape) != 2 or len(words) != shape[0]:
            raise ArgumentError(f"there are {len(words)} words, but the vectors have the shape {shape}")
        self = cls.create(shape[0], shape[1], dtype)
        self.write(0, vectors)
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8", newline="\n") as file:
            for word in words:
                if not word or "\n" in word or "\r" in word:
                    raise ArgumentError(f"a word must be one line and not empty, not {word!r}")
                file.write(word + "\n")
            file.flush()
            self._words = Vocab(file.name)
        self._asked = True
        return self

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
            return int(self._vocab()[word])
        token = operator.index(word)
        if not 0 <= token < self.tokens:
            raise _embla_range(token, self.tokens)
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
        return isinstance(word, int) and 0 <= word < self.tokens

    def __getitem__(self, key: Any) -> Any:
        """``t["king"]``, ``t[281]``: a vector. ``t[["king", "man"]]``, ``t[ids]``: vectors."""
        if isinstance(key, (str, bytes)):
            return self.lookup(self.id(key))
        if isinstance(key, slice):
            return self.lookup(list(range(*key.indices(self.tokens))))
        if isinstance(key, (list, tuple)) and any(isinstance(k, (str, bytes)) for k in key):
            return self.lookup(self.ids(key))
        return self.lookup(key)

    def get(self, word: Word, default: Any = None) -> Any:
        """The vector of a word, or default if there is none."""
        return self[word] if word in self else default

    def vector(self, word: str) -> Any:
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

    # ---- what rows mean ----

    def _query(self, query: Any) -> tuple[Any, list[int]]:
        """A vector or vectors, and the rows to leave out."""
        if isinstance(query, (str, bytes)) or (isinstance(query, int) and not isinstance(query, bool)):
            token = self.id(query)
            return self.lookup(token), [token]
        return query, []

    def _hits(self, ids: Any, scores: Any) -> Hits:
        return Hits(Hit(self.word(i), i, s) for i, s in zip(ids.tolist(), scores.tolist()) if i >= 0)

    def near(self, query: Any, top: int = 10, *, measure: str = "cosine", rows: int = 0,
             exclude: Any = None, threads: int = 0) -> Any:
        """The rows nearest to a word, a row number, or vectors.

        For a word or a row number, and for one vector: a list of hits. For vectors
        (n, dim): row numbers (n, top) and scores (n, top).
        """
        vectors, left = self._query(query)
        if exclude is None:
            exclude = left or None
        ids, scores = _embla.near(self, vectors, top, measure=measure, rows=rows,
                                  exclude=exclude, threads=threads)
        if left or len(ids.shape) == 1:
            return self._hits(ids, scores)
        return ids, scores

    def analogy(self, plus: Iterable[Word], minus: Iterable[Word] = (), top: int = 10, *,
                kind: str = "add", rows: int = 0, keep_words: bool = False,
                threads: int = 0) -> Hits:
        """The rows that answer plus[0] + plus[1] - minus[0]: king + woman - man."""
        ids, scores = _embla.analogy(self, self.ids(plus), self.ids(minus), top, kind=kind,
                                     rows=rows, keep_words=keep_words, threads=threads)
        return self._hits(ids, scores)

    def compare(self, a: Any, b: Any) -> Comparison:
        """Cosine, dot product and distance of two words, rows or vectors."""
        return Comparison(*_embla.compare(self._query(a)[0], self._query(b)[0]))

    def similarity(self, a: Any, b: Any) -> float:
        """The cosine of two words, rows or vectors."""
        return self.compare(a, b).cosine

    def doesnt_match(self, words: Sequence[Word]) -> Word:
        """The word that fits the others least."""
        index, _ = _embla.odd(self, self.ids(words))
        return words[index]

    def eval(self, path: Path, *, pairs: bool | None = None, rows: int = 0,
             exact_case: bool = False, kind: str = "add", threads: int = 0,
             progress: Progress | None = None) -> dict[str, Any]:
        """Scores the table on a file of analogies or of pairs of words.

        The result has "parts" (asked, covered, correct or spearman and pearson)
        and "missing", how often a word without a row occurs.
        """
        vocab = self._vocab()
        if pairs is None:
            try:
                return _embla.eval(self, vocab, path, False, rows=rows, exact_case=exact_case,
                                   kind=kind, threads=threads, progress=progress)
            except UnsupportedError:
                pairs = True  # the library says that this is a file of pairs
        return _embla.eval(self, vocab, path, pairs, rows=rows, exact_case=exact_case, kind=kind,
                           threads=threads, progress=progress)

    def health(self, *, unused: Any = None, tokens: int = 0, alike: float = 0.0,
               untied: bool = False, threads: int = 0) -> dict[str, Any]:
        """What is wrong with rows: norms, duplicates, zeros, groups, rows that were never trained."""
        return _embla.health(self, unused=unused, tokens=tokens, alike=alike, untied=untied,
                             threads=threads)

    def spectrum(self, centred: bool = False, *, threads: int = 0) -> dict[str, Any]:
        """Singular values, and how many directions the table uses."""
        return _embla.spectrum(self, centred, threads=threads)

    def plane(self, basis: Any = None, *, threads: int = 0) -> tuple[Floats, tuple[float, float]]:
        """Every row on the two main directions (PCA): (rows, 2), and shares of the variance."""
        return _embla.plane(self, basis, threads=threads)

    def layout(self, *, steps: int = 0, clusters: int = 0, threads: int = 0,
               progress: Progress | None = None) -> Points:
        """Every row near its nearest rows (t-SNE), and clusters of rows."""
        return Points(*_embla.layout(self, steps=steps, clusters=clusters, threads=threads,
                                     progress=progress))

    def diff(self, other: Table, *, by_word: bool = False, tolerance: float = 0.0,
             most: int | None = None, threads: int = 0) -> dict[str, Any]:
        """Which rows differ from another table; by_word compares rows of the same word."""
        rows = None
        if by_word:
            theirs = other._vocab()
            mine = self._vocab()
            rows = [-1] * self.rows
            for token in range(min(self.rows, mine.end)):
                word = mine.word(token)
                found = None if word is None else theirs.find(word)
                if found is not None and found < other.rows:
                    rows[token] = found
        return _embla.diff(self, other, other=rows, tolerance=tolerance, most=most, threads=threads)

    def map(self, path: Path, *options: str) -> None:
        """Draws every row as a point into an .html, .svg or .png file.

        The program embla, which the package brings, draws it. options are those of
        ``embla map``, for example "--words" and "king,queen".
        """
        from .__main__ import program

        with tempfile.TemporaryDirectory() as folder:
            if self.checkpoint is not None:
                source = self.checkpoint.path
            else:
                source = os.path.join(folder, "table.safetensors")
                self.save(source)
            done = subprocess.run([program(), "map", source, "-o", os.fspath(path), "--quiet",
                                   *options], stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise ArgumentError(done.stderr.strip().removeprefix("embla: "))

    # ---- files ----

    def save(self, path: Path, *, format: str | None = None, dtype: str | None = None,
             rows: int = 0, overwrite: bool = False, progress: Progress | None = None) -> Account:
        """Writes the table and its words to a file of any format; returns the account.

        The format follows from the end of the name: .safetensors, .gguf, .npy, .vec, ..
        """
        if self.checkpoint is not None:
            source: Any = self.checkpoint
        else:
            source = _embla.Checkpoint.over(self, self.words)
        return _account(source.convert(path, format=format, dtype=dtype, rows=rows,
                                       tables_only=True, overwrite=overwrite, progress=progress))

    # ---- names that users of gensim and PyTorch know ----

    @property
    def vector_size(self) -> int:
        """dim (gensim)."""
        return self.dim

    @property
    def embedding_dim(self) -> int:
        """dim (PyTorch)."""
        return self.dim

    @property
    def num_embeddings(self) -> int:
        """rows (PyTorch)."""
        return self.rows

    @property
    def index_to_key(self) -> list[str | None]:
        """The word of each token (gensim)."""
        return self._vocab().list()

    @property
    def key_to_index(self) -> dict[str, int]:
        """The token of each word (gensim)."""
        return {w: i for i, w in enumerate(self._vocab().list()) if w is not None}

    @property
    def vectors(self) -> Any:
        """All rows as floats (gensim). A table of f32 is not copied."""
        if self.dtype != "f32":
            return self.lookup(range_array(self.rows), by_row=True)
        import numpy

        return numpy.asarray(self.view())

    def get_vector(self, word: Word, norm: bool = False) -> Any:
        """The vector of a word, divided by its norm on request (gensim)."""
        vector = self[word]
        if not norm:
            return vector
        length = _embla.compare(vector, vector)[1] ** 0.5
        return vector / length if length > 0 else vector

    def most_similar(self, positive: Any = None, negative: Any = None, topn: int = 10,
                     restrict_vocab: int | None = None) -> list[tuple[str | int, float]]:
        """The nearest words and their cosines (gensim)."""
        plus = [positive] if isinstance(positive, (str, int)) else list(positive or [])
        minus = [negative] if isinstance(negative, (str, int)) else list(negative or [])
        if len(plus) == 1 and not minus:
            token = self.id(plus[0])
            found = _embla.near(self, self.lookup(token), topn, rows=restrict_vocab or 0,
                                exclude=token)
        else:
            found = _embla.analogy(self, self.ids(plus), self.ids(minus), topn,
                                   rows=restrict_vocab or 0)
        return self._pairs(*found)

    def _pairs(self, ids: Any, scores: Any) -> list[tuple[str | int, float]]:
        pairs = zip(ids.tolist(), scores.tolist())
        words = self.words
        if words is None:
            return [(i, score) for i, score in pairs if i >= 0]
        word = words.word
        return [(i if (name := word(i)) is None else name, score) for i, score in pairs if i >= 0]

    def similar_by_vector(self, vector: Any, topn: int = 10) -> list[tuple[str | int, float]]:
        """The words nearest to a vector and their cosines (gensim)."""
        return self._pairs(*_embla.near(self, vector, topn))

    def similar_by_word(self, word: Word, topn: int = 10) -> list[tuple[str | int, float]]:
        """The words nearest to a word and their cosines (gensim)."""
        return self.most_similar([word], topn=topn)

    # ---- how it looks ----

    def __repr__(self) -> str:
        words = self.words
        said = "" if words is None else f", {len(words):,} words"
        return f"<embla.Table of {self.rows:,} x {self.dim:,} {self.dtype}{said}>"

    def _repr_html_(self) -> str:
        words = self.words
        first = [] if words is None else [words.word(i) for i in range(min(8, words.end))]
        shown = ", ".join(html.escape(w) for w in first if w is not None)
        facts = [("rows", f"{self.rows:,}"), ("dim", f"{self.dim:,}"), ("dtype", self.dtype),
                 ("placement", self.placement)]
        if shown:
            facts.append(("first words", shown))
        if self.checkpoint is not None:
            facts.append(("file", html.escape(self.checkpoint.path)))
        cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in facts)
        return f"<table>{cells}</table>"


def range_array(rows: int) -> Any:
    """0 .. rows - 1 as an array of int64."""
    import array

    return array.array("q", range(rows))


def _embla_range(token: int, tokens: int) -> Exception:
    from ._errors import RangeError

    return RangeError(f"token {token} is out of range: the table has {tokens} tokens")


def open(path: Path, tensor: str | None = None, *, lenient: bool = False, copy: bool = False,
         by_row: bool = False) -> Table:
    """Opens the token table of a file or of a model's folder.

    ``path`` may be ``"file::tensor"``. The format is detected from the contents:
    safetensors, GGUF, npy, word2vec, GloVe, fastText, .. The file is mapped and
    read-only; ``copy=True`` reads it into memory. ``by_row=True`` ignores a mapping
    from tokens to rows.
    """
    return Table(path, tensor, lenient=lenient, copy=copy, by_row=by_row)
