# SPDX-License-Identifier: Apache-2.0
"""Classes of the shapes that LangChain and LlamaIndex call. Neither is imported."""

from __future__ import annotations

from typing import Any, Sequence

from ._types import Path
from ._hints import named
from ._text import Encoder


@named
class Embeddings:
    """LangChain's Embeddings: embed_documents, embed_query and their asynchronous forms."""

    def __init__(self, model: Path, *, dim: int = 0, normalize: str = "model", max_tokens: int = 0,
                 overflow: str = "error", strict: bool = False, threads: int = 0) -> None:
        self.encoder = Encoder(model)
        self._options: Any = {"dim": dim, "normalize": normalize, "max_tokens": max_tokens,
                              "overflow": overflow, "strict": strict, "threads": threads}

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text."""
        found: list[list[float]] = self.encoder.encode(list(texts), **self._options).tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        found: list[float] = self.encoder.encode(text, **self._options).tolist()
        return found

    async def aembed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """The same, for asynchronous callers."""
        return self.embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        """The same, for asynchronous callers."""
        return self.embed_query(text)


class LlamaEmbedding(Embeddings):
    """LlamaIndex's BaseEmbedding: get_text_embedding, get_query_embedding, .._batch."""

    def get_text_embedding(self, text: str) -> list[float]:
        """The vector of a text."""
        return self.embed_query(text)

    def get_query_embedding(self, query: str) -> list[float]:
        """The vector of a question."""
        return self.embed_query(query)

    def get_text_embedding_batch(self, texts: Sequence[str], show_progress: bool = False,
                                 **named: Any) -> list[list[float]]:
        """A vector for each text."""
        return self.embed_documents(texts)
