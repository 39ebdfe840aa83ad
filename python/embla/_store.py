# SPDX-License-Identifier: Apache-2.0
"""Giant tables: n-grams of tokens to row numbers, row numbers to rows."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _embla
from ._bar import Shown, shown
from ._errors import ArgumentError
from ._hints import named
from ._table import Checkpoint
from ._types import Path

if TYPE_CHECKING:
    from typing_extensions import Self


def _absolute(path: Path | None) -> str | None:
    return None if path is None else os.path.abspath(path)


@named
class Ngram(_embla.Ngram):
    """An n-gram hasher: the last few tokens select rows of a giant table.

    >>> Ngram.model("qwen3.8-flash-next").rows([100, 200]).shape
    (2, 16)

    It is pickled by the name of its model or by the path of its checkpoint.
    """

    _made: tuple[Any, ...]

    @classmethod
    def model(cls, name: str, *, layer: int = -1, fold: Path | None = None) -> Self:
        """The hasher of a published model; models() lists their names."""
        self = super().model(name, layer=layer, fold=fold)
        self._made = (cls.model, name, layer, _absolute(fold))
        return self

    @classmethod
    def open(cls, path: Path, *, layer: int = -1, fold: Path | None = None) -> Self:
        """The hasher that a checkpoint's config.json or GGUF keys describe."""
        self = cls._open(Checkpoint(path), layer=layer, fold=fold)
        self._made = (cls.open, os.path.abspath(path), layer, _absolute(fold))
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_again, self._made

    def __repr__(self) -> str:
        info = self.info()
        return (f"<embla.Ngram {info['kind']}: {info['rows_per_token']} of {info['rows']:,} rows for each "
                f"token>")


def _make_again(make: Any, source: str, layer: int, fold: str | None) -> Ngram:
    made: Ngram = make(source, layer=layer, fold=fold)
    return made


@named
class Store(_embla.Store):
    """Rows of a giant table.

    place is where they are: "mapped" (the files, through the page cache), "ram",
    "shared" (one copy for all processes of this machine), "direct" (the files, many
    reads at once past the page cache) or "read" (one read for each row). Use it in a ``with``
    statement to free the rows at its end. It is pickled by its path, and opened again.
    """

    _opened: tuple[Any, ...]

    def __new__(cls, path: Path | Checkpoint, tensor: str | None = None, *, layer: int = -1,
                place: str = "mapped", shared_folder: Path | None = None,
                shared_name: str | None = None, found_only: bool = False, wait: float = 0.0,
                threads: int = 0, progress: Shown = None) -> Self:
        checkpoint = path if isinstance(path, Checkpoint) else Checkpoint(path)
        with shown(progress) as step:
            self = super().__new__(cls, checkpoint, tensor, layer=layer, place=place,
                                   shared_folder=shared_folder, shared_name=shared_name,
                                   found_only=found_only, wait=wait, threads=threads,
                                   progress=step)
        self._opened = (checkpoint, tensor, {
            "layer": layer, "place": place, "shared_folder": _absolute(shared_folder),
            "shared_name": shared_name, "found_only": found_only, "wait": wait, "threads": threads})
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        self.info()  # a store that is closed cannot be pickled
        return _store_again, (type(self), *self._opened)

    def tickets(self, *, max_rows: int = 0, max_bytes: int = 0, max_tickets: int = 0, hot_bytes: int = 0,
                hot_file: Path | None = None) -> _embla.Tickets:
        """For rows that arrive while you compute: submit() rows now, wait() for them later."""
        return _embla.Tickets(self, max_rows=max_rows, max_bytes=max_bytes, max_tickets=max_tickets, hot_bytes=hot_bytes,
                              hot_file=hot_file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.info()["rows"]

    @property
    def dim(self) -> int:
        """The numbers in a row."""
        return self.info()["dim"]

    def __repr__(self) -> str:
        try:
            info = self.info()
        except ArgumentError:
            return "<embla.Store, closed>"
        return (f"<embla.Store of {info['rows']:,} x {info['dim']:,} {info['dtype']}, "
                f"{info['placement']}>")


def _store_again(cls: type[Store], checkpoint: Checkpoint, tensor: str | None,
                 options: dict[str, Any]) -> Store:
    return cls(checkpoint, tensor, **options)
