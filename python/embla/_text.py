# SPDX-License-Identifier: Apache-2.0
"""Texts as tokens and as vectors."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import TYPE_CHECKING, Any, Iterable, Iterator, NamedTuple, Union, overload

from . import _embla
from ._bar import Shown, shown
from ._errors import ArgumentError
from ._hints import named, renamed
from ._types import FitReport, Path

if TYPE_CHECKING:
    from typing_extensions import Self

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
        with renamed({file.name: "the list of texts"}):
            yield file.name


class Tokenizer(_embla.Tokenizer):
    """Text to the tokens of a model, and back.

    Opens a tokenizer.json, a SentencePiece model, a GGUF file, a file of
    tiktoken's ranks, a vocab.txt, or a folder with one of them. from_bytes opens the
    content of such a file. A tokenizer is pickled by its path, or with its bytes.
    """

    path: str
    _data: bytes | None = None

    def __new__(cls, path: Path) -> Self:
        self = super().__new__(cls, path)
        self.path = str(path)
        return self

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, name: str = "the bytes") -> Self:
        """A tokenizer of the bytes of its file. Messages call them `name`."""
        copy = bytes(memoryview(data))  # bytes(3) would be three zeros
        self = cls._from_bytes(copy, name)
        self.path, self._data = name, copy
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._data is not None:
            return type(self).from_bytes, (self._data, self.path)
        return type(self), (os.path.abspath(self.path),)

    def encode_batch(self, texts: Iterable[str], *, special: bool = False) -> list[list[int]]:
        """The tokens of each of several texts (the name that tokenizers uses)."""
        return self.encode(list(texts), special=special)

    @overload
    def __call__(self, text: str | bytes) -> list[int]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, text: Iterable[str]) -> list[list[int]]: ...
    def __call__(self, text: Any) -> Any:
        return self.encode(text)

    def __repr__(self) -> str:
        info = self.info()
        return f"<embla.Tokenizer {info['kind']} of {info['tokens']:,} tokens from {self.path!r}>"


@named
class Encoder(_embla.Encoder):
    """Texts to vectors with a static model, which must be a local folder or file.

    The rules of the library that the model belongs to are followed (Model2Vec,
    sentence-transformers, WordLlama), except that no text is truncated unless asked.
    ``fit`` is a file that :meth:`fit` wrote: weights of words and common components.
    An encoder is pickled by the paths of its files.
    """

    path: str
    fitted: FitReport | None = None
    _opened: dict[str, Any]
    _fit: Path | None = None

    def __new__(cls, path: Path, *, tokenizer: Path | None = None, compat: str = "auto",
                fit: Path | None = None) -> Self:
        self = super().__new__(cls, path, tokenizer=tokenizer, compat=compat, fit=fit)
        self.path = str(path)
        self._opened = {"tokenizer": tokenizer, "compat": compat}
        self._fit = fit
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        paths = (self.path, self._opened["tokenizer"], self._fit)
        return _encoder_again, (type(self), *(None if p is None else os.path.abspath(p) for p in paths),
                                self._opened["compat"], self.fitted)

    def fit(self, corpus: Texts, path: Path, *, a: float = 0.0, components: int = 0,
            counts: Path | None = None, lines: int = 0, threads: int = 0,
            progress: Shown = None) -> Self:
        """Fits weights of words (SIF) and common components to a text; returns the new encoder.

        corpus is a text file or several texts. The fit is written to path;
        ``Encoder(model, fit=path)`` opens the model with it. a=-1 means no weights,
        components=-1 removes none. ``fitted`` of the result says what was done.
        """
        with _text_file(corpus) as file, shown(progress) as step:
            report = _embla.fit(self, file, path, a=a, components=components, counts=counts,
                                lines=lines, threads=threads, progress=step)
        new = type(self)(self.path, fit=path, **self._opened)
        new.fitted = report
        return new

    def similarity(self, a: str, b: str) -> float:
        """The cosine of two texts."""
        first, second = self.encode([a, b])
        return _embla.compare(first, second)[0]

    def __repr__(self) -> str:
        info = self.info()
        return f"<embla.Encoder {info['compat']}, {info['rows']:,} x {info['dim']} {info['dtype']}>"


def _encoder_again(cls: type[Encoder], path: str, tokenizer: str | None, fit: str | None,
                   compat: str, fitted: FitReport | None) -> Encoder:
    self = cls(path, tokenizer=tokenizer, compat=compat, fit=fit)
    self.fitted = fitted
    return self


class Found(NamedTuple):
    """A line that was found: its text, its index from 0, its cosine with the question."""

    text: str
    id: int
    score: float


@named
class Index(_embla.Index):
    """The vectors of texts, and the nearest texts to a question: exact, in memory.

    texts is a text file, whose lines are searched, or several texts. A text without a
    known word is never found. An index is pickled with its vectors, and with its texts or the
    path of their file; its encoder is pickled by path.

    >>> index = Index(Encoder("demo/words.vec"), ["a cat", "a house"])    # doctest: +SKIP
    >>> index.search("dog", top=1)[0].text                                # doctest: +SKIP
    'a cat'
    """

    _texts: list[str] | None = None
    _made: tuple[Encoder, Texts]

    def __new__(cls, encoder: Encoder, texts: Texts, *, dtype: str = "f32", threads: int = 0,
                progress: Shown = None) -> Self:
        kept = texts if isinstance(texts, (str, os.PathLike)) else list(texts)
        with _text_file(kept) as file, shown(progress) as step:
            self = cls._make(encoder, file, dtype=dtype, threads=threads, progress=step)
        self._texts = kept if isinstance(kept, list) else None
        self._made = (encoder, kept if isinstance(kept, list) else os.path.abspath(kept))
        return self

    @classmethod
    def open(cls, path: Path, encoder: Encoder, texts: Texts) -> Self:
        """Opens what save() wrote, with the same encoder and the same texts."""
        kept = texts if isinstance(texts, (str, os.PathLike)) else list(texts)
        with _text_file(kept) as file:
            self = cls._open(path, encoder, file)
        self._texts = kept if isinstance(kept, list) else None
        self._made = (encoder, kept if isinstance(kept, list) else os.path.abspath(kept))
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        with tempfile.TemporaryDirectory(prefix="embla-") as folder:
            file = os.path.join(folder, "index.safetensors")
            self.save(file)
            with open(file, "rb") as stored:
                return _index_again, (type(self), stored.read(), *self._made)

    @overload
    def search(self, question: str, top: int = 10, *, threads: int = 0) -> list[Found]: ...  # type: ignore[overload-overlap]
    @overload
    def search(self, question: Iterable[str], top: int = 10, *,
               threads: int = 0) -> list[list[Found]]: ...
    def search(self, question: str | Iterable[str], top: int = 10, *,
               threads: int = 0) -> list[Found] | list[list[Found]]:
        """The nearest texts to a question, nearest first; for several questions a list of them."""
        if isinstance(question, (str, bytes)):
            return self._found(self._search(question, top, threads=threads))
        return [self._found(f) for f in self._search(list(question), top, threads=threads)]

    def _found(self, hits: list[tuple[str, int, float]]) -> list[Found]:
        texts = self._texts
        return [Found(text if texts is None else texts[i], i, score) for text, i, score in hits]

    def __len__(self) -> int:
        return self.info()["rows"]

    def __repr__(self) -> str:
        info = self.info()
        return f"<embla.Index of {info['rows']:,} texts, {info['dim']} {info['dtype']}>"


def _index_again(cls: type[Index], stored: bytes, encoder: Encoder, texts: Texts) -> Index:
    with tempfile.TemporaryDirectory(prefix="embla-") as folder:
        file = os.path.join(folder, "index.safetensors")
        with open(file, "wb") as written:
            written.write(stored)
        return cls.open(file, encoder, texts)
