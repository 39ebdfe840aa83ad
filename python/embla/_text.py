# SPDX-License-Identifier: Apache-2.0
"""Texts as tokens and as vectors."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any, Iterable, Iterator, NamedTuple, Union

from . import _embla
from ._errors import ArgumentError
from ._table import Path, Progress

Texts = Union[Path, Iterable[str]]


@contextlib.contextmanager
def _text_file(texts: Texts) -> Iterator[Path]:
    """The path of a text file; texts are written to one, a line each, until the end."""
    if isinstance(texts, (str, os.PathLike)):
        yield texts
        return
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8", newline="\n",
                                     errors="surrogateescape") as file:
        for text in texts:
            file.write(" ".join(text.splitlines()) + "\n")
        file.flush()
        if file.tell() == 0:
            raise ArgumentError("there are no texts: the list is empty")
        yield file.name


class Tokenizer(_embla.Tokenizer):
    """Text to the tokens of a model, and back.

    Opens a tokenizer.json, a SentencePiece model, a GGUF file, a file of
    tiktoken's ranks, a vocab.txt, or a folder with one of them.
    """

    path: str

    def __new__(cls, path: Path) -> Tokenizer:
        self = super().__new__(cls, path)
        self.path = str(path)
        return self

    def encode_batch(self, texts: Iterable[str], *, special: bool = False) -> list[list[int]]:
        """The tokens of each of several texts (the name that tokenizers uses)."""
        found = self.encode(list(texts), special=special)
        return found  # type: ignore[no-any-return]

    def __call__(self, text: Any) -> Any:
        return self.encode(text)

    def __repr__(self) -> str:
        info = self.info()
        return f"<embla.Tokenizer {info['kind']} of {info['tokens']:,} tokens from {self.path!r}>"


class Encoder(_embla.Encoder):
    """Texts to vectors with a static model, which must be a local folder or file.

    The rules of the library that the model belongs to are followed (Model2Vec,
    sentence-transformers, WordLlama), except that no text is truncated unless asked.
    ``fit`` is a file that :meth:`fit` wrote: weights of words and common components.
    """

    path: str
    fitted: dict[str, Any] | None = None
    _opened: dict[str, Any]

    def __new__(cls, path: Path, *, tokenizer: Path | None = None, compat: str = "auto",
                fit: Path | None = None) -> Encoder:
        self = super().__new__(cls, path, tokenizer=tokenizer, compat=compat, fit=fit)
        self.path = str(path)
        self._opened = {"tokenizer": tokenizer, "compat": compat}
        return self

    def fit(self, corpus: Texts, path: Path, *, a: float = 0.0, components: int = 0,
            counts: Path | None = None, lines: int = 0, threads: int = 0,
            progress: Progress | None = None) -> Encoder:
        """Fits weights of words (SIF) and common components to a text; returns the new encoder.

        corpus is a text file or several texts. The fit is written to path;
        ``Encoder(model, fit=path)`` opens the model with it. a=-1 means no weights,
        components=-1 removes none. ``fitted`` of the result says what was done.
        """
        with _text_file(corpus) as file:
            report = _embla.fit(self, file, path, a=a, components=components, counts=counts,
                                lines=lines, threads=threads, progress=progress)
        new = type(self)(self.path, fit=path, **self._opened)
        new.fitted = report
        return new

    def similarity(self, a: str, b: str) -> float:
        """The cosine of two texts."""
        first, second = self.encode([a, b])
        return float(_embla.compare(first, second)[0])

    def __repr__(self) -> str:
        info = self.info()
        return f"<embla.Encoder {info['compat']}, {info['rows']:,} x {info['dim']} {info['dtype']}>"


class Found(NamedTuple):
    """A line that was found: its text, its index from 0, its cosine with the question."""

    text: str
    id: int
    score: float


class Index(_embla.Index):
    """The vectors of texts, and the nearest texts to a question: exact, in memory.

    texts is a text file, whose lines are searched, or several texts. A text without a
    known word is never found.

    >>> index = Index(Encoder("demo/words.vec"), ["a cat", "a house"])    # doctest: +SKIP
    >>> index.search("dog", top=1)[0].text                                # doctest: +SKIP
    'a cat'
    """

    _texts: list[str] | None = None

    def __new__(cls, encoder: Encoder, texts: Texts, *, dtype: str = "f32", threads: int = 0,
                progress: Progress | None = None) -> Index:
        kept = texts if isinstance(texts, (str, os.PathLike)) else list(texts)
        with _text_file(kept) as file:
            self = cls._make(encoder, file, dtype=dtype, threads=threads, progress=progress)
        self._texts = kept if isinstance(kept, list) else None
        return self

    @classmethod
    def open(cls, path: Path, encoder: Encoder, texts: Texts) -> Index:
        """Opens what save() wrote, with the same encoder and the same texts."""
        kept = texts if isinstance(texts, (str, os.PathLike)) else list(texts)
        with _text_file(kept) as file:
            self = cls._open(path, encoder, file)
        self._texts = kept if isinstance(kept, list) else None
        return self

    def search(self, question: str | Iterable[str], top: int = 10, *, threads: int = 0) -> Any:
        """The nearest texts to a question, nearest first; for several questions a list of them."""
        one = isinstance(question, (str, bytes))
        found = self._search(question if one else list(question), top, threads=threads)
        return self._found(found) if one else [self._found(f) for f in found]

    def _found(self, hits: list[tuple[str, int, float]]) -> list[Found]:
        texts = self._texts
        return [Found(text if texts is None else texts[i], i, score) for text, i, score in hits]

    def __len__(self) -> int:
        return int(self.info()["rows"])

    def __repr__(self) -> str:
        info = self.info()
        return f"<embla.Index of {info['rows']:,} texts, {info['dim']} {info['dtype']}>"
