# SPDX-License-Identifier: Apache-2.0
"""An embedding for PyTorch on the CPU: lookups and sparse gradients by embla.

This module needs PyTorch; ``import embla`` does not import it.
"""

from __future__ import annotations

from typing import Any

import torch

from . import _embla
from ._errors import ArgumentError
from ._table import Table


class _Lookup(torch.autograd.Function):
    """Rows of the weight, and backwards the sums of the gradients of each row."""

    @staticmethod
    def forward(ctx: Any, weight: torch.Tensor, ids: torch.Tensor, module: Embedding) -> torch.Tensor:
        ctx.save_for_backward(ids)
        ctx.size = weight.shape
        ctx.padding = module.padding_idx
        out = torch.empty((*ids.shape, weight.shape[1]), dtype=torch.float32)
        table = Table.over(weight.detach().numpy())
        table.lookup(ids, out=out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (ids,) = ctx.saved_tensors
        rows, dim = ctx.size
        scatter = _embla.Scatter(rows, max(1, ids.numel()))
        touched = torch.from_numpy(scatter.plan(ids.reshape(-1)))
        sums = torch.from_numpy(scatter.sum(gradient.reshape(-1, dim).contiguous().numpy()))
        if ctx.padding is not None:
            sums[touched == ctx.padding] = 0
        # rows are in order and different; PyTorch before 2.1 has no other way to say so
        sparse = torch.sparse_coo_tensor(touched[None], sums, (rows, dim))._coalesced_(True)
        return sparse, None, None


class Embedding(torch.nn.Module):
    """``torch.nn.Embedding(sparse=True)`` for float32 weights on the CPU.

    An id outside the table is an IndexError that names it. The gradient of the weight is sparse;
    gradients of a row are summed in double, in the order of the batch.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, *,
                 weight: torch.Tensor | None = None) -> None:
        super().__init__()
        if weight is None:
            weight = torch.randn(num_embeddings, embedding_dim)
            if padding_idx is not None and -num_embeddings <= padding_idx < num_embeddings:
                weight[padding_idx] = 0
        if tuple(weight.shape) != (num_embeddings, embedding_dim) or weight.dtype != torch.float32:
            raise ValueError(f"weight is {tuple(weight.shape)} {weight.dtype}; it must be "
                             f"({num_embeddings}, {embedding_dim}) torch.float32")
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ArgumentError(f"padding_idx is {padding_idx}; it must be between {-num_embeddings} "
                                f"and {num_embeddings - 1}")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = torch.nn.Parameter(weight.contiguous())

    @classmethod
    def from_table(cls, table: Table, padding_idx: int | None = None) -> Embedding:
        """An embedding with a copy of a table's rows."""
        weight = torch.from_numpy(table.lookup(list(range(table.tokens))))
        return cls(table.tokens, table.dim, padding_idx, weight=weight)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of ids, with one more axis."""
        found: torch.Tensor = _Lookup.apply(self.weight, ids, self)  # type: ignore[no-untyped-call]
        return found

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"
