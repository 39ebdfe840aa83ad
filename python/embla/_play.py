# SPDX-License-Identifier: Apache-2.0
"""A page to learn with: Embla itself, a model and texts in one file."""

from __future__ import annotations

import hashlib
import html
import os

from . import _embla
from ._errors import ArgumentError, FormatError, MissingFileError
from ._hints import named
from ._learn import Model
from ._program import folder_of
from ._table import Checkpoint, Table
from ._types import Path


class Page:
    """A page of :func:`play`. A notebook shows it in a frame.

    rows of `of` rows of the table are in it; model says whether it predicts. stored is the
    sentence that says how they are stored, as the page does.
    """

    rows: int
    of: int
    model: bool
    stored: str

    def __init__(self, page: bytes, *, rows: int, of: int, model: bool, stored: str) -> None:
        self._page = page
        self.rows, self.of, self.model, self.stored = rows, of, model, stored

    def save(self, path: Path, *, overwrite: bool = False) -> None:
        """Writes the page to a new file, which a browser opens without a network."""
        if not os.fspath(path).lower().endswith((".html", ".htm")):
            raise ArgumentError(f"path is {os.fspath(path)!r}; the name of a page must end in .html")
        try:
            with open(path, "wb" if overwrite else "xb") as file:
                file.write(self._page)
        except FileExistsError:
            raise ArgumentError(f"{os.fspath(path)} already exists; choose another name, "
                                "or use overwrite=True") from None

    def __bytes__(self) -> bytes:
        return self._page

    def _repr_html_(self) -> str:
        page = html.escape(self._page.decode("utf-8"))
        return ('<iframe sandbox="allow-scripts" width="100%" height="760" style="border: 0" '
                f'title="Embla: a page to learn with" srcdoc="{page}"></iframe>')

    def __repr__(self) -> str:
        return f"<embla.Page of {len(self._page) / 1e6:.2f} MB: {self.stored}>"


def _module() -> bytes:
    """What a page computes with, of this version."""
    path = os.path.join(folder_of("EMBLA_PLAY", "module"), "play.wasm.gz")
    if not os.path.exists(path):
        raise MissingFileError(f"{path} is missing, with which a page computes; wheels have it. packaging/wasm "
                               "builds it from the source, and EMBLA_PLAY may name its folder")
    with open(path, "rb") as file:
        module = file.read()
    try:
        with open(path + ".sha256", encoding="ascii") as file:
            checksum, _, version = (file.read().split() + [""] * 3)[:3]
    except OSError:
        raise FormatError(f"{path}.sha256 is missing, which names the version of the module") from None
    ours = _embla.facts()["version"]
    if version != ours:
        raise FormatError(f"{path} is of version {version or 'unknown'}, and this is embla {ours}")
    if hashlib.sha256(module).hexdigest() != checksum:
        raise FormatError(f"{path} is damaged: its checksum is not that of {path}.sha256")
    return module


def _source(source: Table | Model | Checkpoint | Path | None) -> tuple[_embla.Checkpoint | None, str | None]:
    """The checkpoint to put into the page, and what commands call it."""
    if source is None:
        return None, None
    if isinstance(source, Model):
        source = source.checkpoint
    if isinstance(source, Table):
        if source.checkpoint is not None and source._opened[0] is None:
            source = source.checkpoint
        else:
            return _embla.Checkpoint.over(source, source.words), "table"
    elif not isinstance(source, Checkpoint):
        source = Checkpoint(source)
    return source, source.path or "table"


@named
def play(source: Table | Model | Checkpoint | Path | None = None, *, file: Path | None = None, rows: int = 0,
         title: str | None = None, overwrite: bool = False) -> Page:
    """A page to learn with: tokens, rows, positions, near rows, the next word, a training.

    source is a table or a model, or the path of one; None means the model of the demo. A model
    that predicts and has at most 5 MB goes in whole. Of any other the table with its words goes
    in: as f32 if the page stays below 10 MB, otherwise in 8 bits with a scale for each row.
    rows asks for the first rows only; 0 means all, or as many as 10 MB hold.

    The page is one file that needs no network: Embla itself is in it, compiled to
    WebAssembly. file is the name of a new .html file to write; :meth:`Page.save` writes it
    later. A notebook shows the page in a frame, and keeps it.
    """
    checkpoint, name = _source(source)
    made = _embla.play_page(checkpoint, module=_module(), demo=folder_of("EMBLA_DEMO", "demo"),
                            name=name, rows=rows, title=title)
    page = Page(made["page"], rows=made["rows"], of=made["of"], model=made["model"], stored=made["stored"])
    if file is not None:
        page.save(file, overwrite=overwrite)
    return page
