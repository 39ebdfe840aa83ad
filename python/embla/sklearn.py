# SPDX-License-Identifier: Apache-2.0
"""A transformer for scikit-learn: texts to vectors. Needs scikit-learn."""

from __future__ import annotations

from typing import Any, Iterable

from sklearn.base import BaseEstimator, TransformerMixin

from ._text import Encoder


class EmblaVectorizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Vectors of texts by a static model. It is pickled by the path of the model.

    Columns of pandas and polars may be transformed as they are.
    """

    def __init__(self, model: str, dim: int = 0, normalize: str = "model") -> None:
        self.model = model
        self.dim = dim
        self.normalize = normalize

    def _encoder(self) -> Encoder:
        if getattr(self, "_opened", None) is None:
            self._opened = Encoder(self.model)
        return self._opened

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in super().__getstate__().items() if k != "_opened"}

    def fit(self, X: Iterable[str], y: Any = None) -> EmblaVectorizer:
        """Opens the model; nothing is learned."""
        self._encoder()
        return self

    def transform(self, X: Iterable[str]) -> Any:
        """The vectors (n, dim) of texts."""
        return self._encoder().encode(list(X), dim=self.dim, normalize=self.normalize)

    def __sklearn_is_fitted__(self) -> bool:
        return True
