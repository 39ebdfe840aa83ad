# SPDX-License-Identifier: Apache-2.0
"""Giant tables: n-grams of tokens to row numbers, row numbers to rows."""

from __future__ import annotations

from types import TracebackType

from . import _embla
from ._table import Checkpoint, Path, Progress


class Ngram(_embla.Ngram):
    """An n-gram hasher: the last few tokens select rows of a giant table.

    >>> Ngram.model("qwen3.8-flash-next").rows([100, 200]).shape
    (2, 16)
    """

    @classmethod
    def open(cls, path: Path, *, layer: int = -1, fold: Path | None = None) -> Ngram:
        """The hasher that a checkpoint's config.json or GGUF keys describe."""
        return cls._open(Checkpoint(path), layer=layer, fold=fold)


class Store(_embla.Store):
    """Rows of a giant table.

    place is where they are: "mapped" (the files, through the page cache), "ram",
    "shared" (one copy for all processes of this machine) or "read" (one read for
    each row). Use it in a ``with`` statement to free the rows at its end.
    """

    def __new__(cls, path: Path | Checkpoint, tensor: str | None = None, *, layer: int = -1,
                place: str = "mapped", shared_folder: Path | None = None,
                shared_name: str | None = None, found_only: bool = False, wait: float = 0.0,
                threads: int = 0, progress: Progress | None = None) -> Store:
        checkpoint = path if isinstance(path, Checkpoint) else Checkpoint(path)
        return super().__new__(cls, checkpoint, tensor, layer=layer, place=place,
                               shared_folder=shared_folder, shared_name=shared_name,
                               found_only=found_only, wait=wait, threads=threads,
                               progress=progress)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.info()["rows"])

    @property
    def dim(self) -> int:
        """The numbers in a row."""
        return int(self.info()["dim"])
