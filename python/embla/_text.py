# SPDX-License-Identifier: Apache-2.0
"""Texts as tokens and as vectors."""

from __future__ import annotations

from typing import Any, Iterable

from . import _embla
from ._table import Path


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
    """

    path: str

    def __new__(cls, path: Path, *, tokenizer: Path | None = None, compat: str = "auto") -> Encoder:
        self = super().__new__(cls, path, tokenizer=tokenizer, compat=compat)
        self.path = str(path)
        return self

    def similarity(self, a: str, b: str) -> float:
        """The cosine of two texts."""
        first, second = self.encode([a, b])
        return float(_embla.compare(first, second)[0])

    def __repr__(self) -> str:
        info = self.info()
        return f"<embla.Encoder {info['compat']}, {info['rows']:,} x {info['dim']} {info['dtype']}>"
