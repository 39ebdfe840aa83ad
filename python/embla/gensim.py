# SPDX-License-Identifier: Apache-2.0
"""To and from gensim's KeyedVectors. Needs gensim; ``import embla`` does not import it."""

from __future__ import annotations

from typing import Any

from ._table import Table


def to_gensim(table: Table) -> Any:
    """A KeyedVectors with the words and a copy of the rows of a table."""
    from gensim.models import KeyedVectors

    keys = table.index_to_key
    kept = [i for i, word in enumerate(keys) if word is not None]
    kv = KeyedVectors(table.dim)
    kv.add_vectors([keys[i] for i in kept], table.lookup(kept))
    return kv


def from_gensim(kv: Any) -> Table:
    """A table with the words and a copy of the rows of a KeyedVectors."""
    return Table.of_words(list(kv.index_to_key), kv.vectors)
