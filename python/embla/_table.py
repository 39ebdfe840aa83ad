# SPDX-License-Identifier: Apache-2.0
"""Tables of embeddings: open, look up, compare, study, convert."""

from __future__ import annotations

import array
import builtins
import html
import os
import tempfile
from typing import TYPE_CHECKING, Any, Iterable, NamedTuple, Sequence

from . import _embla
from ._bar import Shown, shown
from ._errors import ArgumentError, FileError, NotFoundError, UnsupportedError
from ._hints import named, needs_path
from ._keyed import Keyed
from ._program import run_program
from ._rows import Vocab
from ._types import Conversion, Diff, Health, Line, Path, Spectrum, Word

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._types import Floats, FloatsLike, Ids, IdsLike, Labels


class Points(NamedTuple):
    """Every row as a point: places (rows, 2), the community of each row, and the communities.

    A community is (number of rows, its central rows). A label of -1 means no community.
    """

    xy: Floats
    labels: Labels
    communities: list[tuple[int, Ids]]


class Account(NamedTuple):
    """What a conversion did: the new format and its bytes, a line for each tensor, notes."""

    format: str
    bytes: int
    lines: list[Line]
    notes: list[str]

    @property
    def rows(self) -> int:
        """Rows of the tables that were written."""
        return sum(line["new_rows"] for line in self.lines if line["table"])

    @property
    def same(self) -> int:
        """Rows with the same numbers, bit for bit."""
        return sum(line["same"] for line in self.lines if line["table"])

    @property
    def rounded(self) -> int:
        """Rows that were rounded to the new dtype."""
        return sum(line["rounded"] for line in self.lines if line["table"])


def _account(data: Conversion) -> Account:
    return Account(data["format"], data["bytes"], data["lines"], data["notes"])


@named
class Checkpoint(_embla.Checkpoint):
    """A file or a model's folder, and the tensors in it.

    It is pickled by its path.

    >>> c = Checkpoint("demo/words.safetensors")          # doctest: +SKIP
    >>> [t["name"] for t in c.tensors()]                  # doctest: +SKIP
    """

    path: str = ""  # "" means a table in memory, see over()
    _options: dict[str, Any]

    def __new__(cls, path: Path, *, lenient: bool = False, copy: bool = False,
                npy_dtype: str | None = None) -> Self:
        needs_path("Checkpoint", path)
        try:
            self = super().__new__(cls, path, lenient=lenient, copy=copy, npy_dtype=npy_dtype)
        except UnsupportedError as error:
            if "the option as = bf16" not in str(error):
                raise
            said = str(error).replace("the option as = bf16", "npy_dtype='bf16'")
            raise UnsupportedError(said) from None
        self.path = os.fspath(path)
        self._options = {"lenient": lenient, "copy": copy, "npy_dtype": npy_dtype}
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.path:
            raise TypeError("a Checkpoint of a table in memory cannot be pickled; pickle the table")
        sizes = [size for _, size in self.files]
        return _open_again, (type(self), os.path.abspath(self.path), self._options, sizes)

    def words(self) -> Vocab | None:
        """The words of the token table; None if the checkpoint has none."""
        try:
            return Vocab(self)
        except NotFoundError:
            return None

    def table(self, tensor: str | None = None, *, by_row: bool = False) -> Table:
        """The token table, or the tensor with this name."""
        return Table._of(self, tensor, by_row)

    def save(self, path: Path, *, format: str | None = None, dtype: str | None = None,
             rows: int = 0, tables_only: bool = False, overwrite: bool = False,
             progress: Shown = None) -> Account:
        """Writes the checkpoint to another file; returns the account of every row."""
        with shown(progress) as step:
            return _account(self.convert(path, format=format, dtype=dtype, rows=rows,
                                         tables_only=tables_only, overwrite=overwrite,
                                         progress=step))

    def __repr__(self) -> str:
        where = repr(self.path) if self.path else "in memory"
        return f"<embla.Checkpoint {where}: {self.format}, {len(self.tensors())} tensors>"


def _open_again(cls: type[Checkpoint], path: str, options: dict[str, Any],
                sizes: list[int]) -> Checkpoint:
    """Opens a pickled checkpoint; files of other sizes are not those that were pickled."""
    self = cls(path, **options)
    now = [size for _, size in self.files]
    if now != sizes:
        raise FileError(f"{path} has changed since it was pickled: it had {sum(sizes):,} bytes in "
                        f"{len(sizes)} files, and has {sum(now):,} in {len(now)}")
    return self


@named
class Table(Keyed):
    """Rows x dim numbers of one dtype, with the words of its rows if it has them.

    Open one with :func:`embla.open`, make one with ``Table.create`` or use an
    array with ``Table.over`` or ``Table.of_words``. A table of a file is pickled by
    the path of the file, and a table in memory with its rows and words.
    """

    _opened: tuple[str | None, bool] = (None, False)  # tensor and by_row
    _model: str | None = None  # the path of the model whose table it is
    _passing: bool = False  # its file is removed when the table is gone

    def __new__(cls, path: Path, tensor: str | None = None, *, lenient: bool = False,
                copy: bool = False, by_row: bool = False, npy_dtype: str | None = None) -> Self:
        needs_path("Table", path)
        checkpoint = Checkpoint(path, lenient=lenient, copy=copy, npy_dtype=npy_dtype)
        return cls._of(checkpoint, tensor, by_row)

    @classmethod
    def _of(cls, checkpoint: Checkpoint, tensor: str | None = None, by_row: bool = False) -> Self:
        self = cls._open(checkpoint, tensor, by_row=by_row)
        self.checkpoint = checkpoint
        self._opened = (tensor, by_row)
        if tensor is not None:
            self._asked = True  # the words belong to the token table
        return self

    @classmethod
    def of_words(cls, words: Sequence[str], vectors: FloatsLike, *, dtype: str = "f32") -> Self:
        """A table of words and their vectors (rows, dim), copied."""
        shape = _shape(vectors)
        if len(shape) != 2 or len(words) != shape[0]:
            raise ArgumentError(f"there are {len(words)} words, but the vectors have the shape {shape}")
        self = cls.create(shape[0], shape[1], dtype)
        self.write(0, vectors)
        self._words = Vocab.of(words)
        self._asked = True
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._model is not None:
            return _table_of_model, (self._model,)
        if self.checkpoint is not None and not self._passing:
            return type(self)._of, (self.checkpoint, *self._opened)
        plain = self.dtype == "f32" and self.scale == 1
        # view() may end the use of a sketch, so most tables do without it
        rows: Any = self.lookup(array.array("q", range(self.rows))) if plain else self.view()
        stored = memoryview(rows).tobytes()
        facts = {"rows": self.rows, "dim": self.dim, "dtype": self.dtype, "scale": self.scale}
        words = None if self.words is None else self.words.list()
        return _restored, (type(self), stored, facts, words)

    # ---- studies ----

    def health(self, *, unused: IdsLike | None = None, tokens: int = 0, alike: float = 0.0,
               untied: bool = False, threads: int = 0) -> Health:
        """What is wrong with rows: norms, duplicates, zeros, groups, rows that were never trained."""
        return _embla.health(self, unused=unused, tokens=tokens, alike=alike, untied=untied,
                             threads=threads)

    def spectrum(self, centred: bool = False, *, threads: int = 0) -> Spectrum:
        """Singular values, and how many directions the table uses."""
        return _embla.spectrum(self, centred, threads=threads)

    def plane(self, basis: IdsLike | None = None, *, threads: int = 0) -> tuple[Floats, tuple[float, float]]:
        """Every row on the two main directions (PCA): (rows, 2), and shares of the variance."""
        return _embla.plane(self, basis, threads=threads)

    def layout(self, *, steps: int = 0, max_communities: int = 0, threads: int = 0,
               progress: Shown = None) -> Points:
        """Every row near its nearest rows (t-SNE), and communities of rows."""
        with shown(progress) as step:
            return Points(*_embla.layout(self, steps=steps, max_communities=max_communities, threads=threads,
                                         progress=step))

    def diff(self, other: Table, *, by_word: bool = False, tolerance: float = 0.0,
             max_rows: int | None = None, threads: int = 0) -> Diff:
        """Which rows differ from another table; by_word compares rows of the same word."""
        rows = None
        if by_word:
            theirs = other._vocab()
            mine = self._vocab()
            rows = [-1] * self.rows
            for token in range(min(self.rows, mine.end)):
                word = mine.word(token)
                found = None if word is None else theirs.find(word)
                if found is not None and found < other.rows:
                    rows[token] = found
        return _embla.diff(self, other, other=rows, tolerance=tolerance, max_rows=max_rows, threads=threads)

    def map(self, path: Path, *, words: Iterable[Word] = (),
            arrows: Iterable[tuple[Word, Word]] = (), only: bool = False, layout: str = "auto",
            color: str | None = None, neighbours: int | None = None, rows: int = 0,
            title: str | None = None, size: tuple[int, int] | None = None, theme: str = "auto",
            format: str | None = None, overwrite: bool = False, threads: int = 0,
            progress: bool | None = None) -> None:
        """Draws every row as a point into an .html, .svg or .png file.

        words are highlighted; arrows are pairs of words, which are joined; only=True draws no
        other rows. layout is "auto", "neighbours" (t-SNE), "pca" or "arrows"; color is
        "community", "norm", "row" or "none". A page shows some nearest rows (neighbours) of a
        clicked row; a picture has a size in pixels. The program embla, which the package
        brings, draws it: ``embla help map`` says more.
        """
        options = [f"--layout={layout}", f"--theme={theme}", f"--threads={threads}"]
        options += [f"--{name}={value}" for name, value in (
            ("color", color), ("neighbours", neighbours), ("rows", rows or None), ("title", title),
            ("format", format)) if value is not None]
        options += ["--only"] * only + ["--force"] * overwrite
        if size is not None:
            options.append(f"--size={size[0]}x{size[1]}")
        if ends := [f"{self._named(a)}:{self._named(b)}" for a, b in arrows]:
            options.append(f"--arrows={','.join(ends)}")
        with tempfile.TemporaryDirectory(prefix="embla-") as folder:
            if names := [self._named(w) for w in words]:
                file = os.path.join(folder, "words.txt")
                with builtins.open(file, "w", encoding="utf-8", errors="surrogateescape") as list_:
                    list_.write("".join(f"{w}\n" for w in names))
                options.append(f"--words=@{file}")
            run_program("map", [*options, f"--output={os.fspath(path)}", "--quiet"],
                        *self._source(folder), progress=progress)

    def _named(self, word: Word) -> str:
        """A word as the program takes it; a row number as #5."""
        return word if isinstance(word, str) else f"#{self.id(word)}"

    def _source(self, folder: str) -> tuple[str, list[str]]:
        """The file of this table for the program, and options; a table in memory is saved."""
        if self.checkpoint is None or not self.checkpoint.path:
            file = os.path.join(folder, "table.safetensors")
            self.save(file)
            return file, []
        made, tensor = self.checkpoint._options, self._opened[0]
        options = ["--lenient"] * bool(made["lenient"])
        options += [f"--as={made['npy_dtype']}"] * bool(made["npy_dtype"])
        return self.checkpoint.path + (f"::{tensor}" if tensor is not None else ""), options

    # ---- files ----

    def save(self, path: Path, *, format: str | None = None, dtype: str | None = None,
             rows: int = 0, overwrite: bool = False, progress: Shown = None) -> Account:
        """Writes the table and its words to a file of any format; returns the account.

        The format follows from the end of the name: .safetensors, .gguf, .npy, .vec, ..
        """
        if self.checkpoint is not None and self._opened[0] is None:
            source: _embla.Checkpoint = self.checkpoint
        else:
            source = _embla.Checkpoint.over(self, self.words)
        with shown(progress) as step:
            return _account(source.convert(path, format=format, dtype=dtype, rows=rows,
                                           tables_only=True, overwrite=overwrite, progress=step))

    def save_word2vec_format(self, fname: Path, *, binary: bool = False,
                             overwrite: bool = False) -> Account:
        """Writes the words and rows as word2vec does (gensim). Replaces no file unless asked."""
        return self.save(fname, format="word2vec-bin" if binary else "word2vec",
                         overwrite=overwrite)

    # ---- how it looks ----

    def __repr__(self) -> str:
        words = self.words
        said = "" if words is None else f", {len(words):,} words"
        return f"<embla.Table of {self.rows:,} x {self.dim:,} {self.dtype}{said}>"

    def _repr_html_(self) -> str:
        words = self.words
        first = [] if words is None else [words.word(i) for i in range(min(8, words.end))]
        some = ", ".join(html.escape(w) for w in first if w is not None)
        facts = [("rows", f"{self.rows:,}"), ("dim", f"{self.dim:,}"), ("dtype", self.dtype),
                 ("placement", self.placement)]
        if some:
            facts.append(("first words", some))
        if self.checkpoint is not None:
            facts.append(("file", html.escape(self.checkpoint.path)))
        cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in facts)
        return f"<table>{cells}</table>"


def _shape(vectors: FloatsLike) -> tuple[int, ...]:
    if isinstance(vectors, (list, tuple)):
        return (len(vectors), len(vectors[0])) if vectors and hasattr(vectors[0], "__len__") else (len(vectors),)
    return tuple(vectors.shape if hasattr(vectors, "shape") else memoryview(vectors).shape or ())  # type: ignore[arg-type]


def _restored(cls: type[Table], stored: bytes, facts: dict[str, Any],
              words: list[str] | None) -> Table:
    """A table in memory that was pickled, with the same bits."""
    rows, dim, dtype, scale = facts["rows"], facts["dim"], facts["dtype"], facts["scale"]
    if dtype == "f32" and scale == 1:
        self = cls.create(rows, dim)
        self.write(0, memoryview(stored).cast("f", (rows, dim)))
    else:
        memory = memoryview(bytearray(stored)).cast("B", (rows, len(stored) // rows))
        self = cls.over(memory, dtype=dtype, dim=dim, writable=True, scale=scale)
    self._words, self._asked = None if words is None else Vocab.of(words), True
    return self


def _table_of_model(path: str) -> Table:
    from ._learn import Model

    return Model(path).table


@named
def open(path: Path, tensor: str | None = None, *, lenient: bool = False, copy: bool = False,
         by_row: bool = False, npy_dtype: str | None = None) -> Table:
    """Opens the token table of a file or of a model's folder.

    ``path`` may be ``"file::tensor"``. The format is detected from the contents:
    safetensors, GGUF, npy, word2vec, GloVe, fastText, .. The file is mapped and
    read-only; ``copy=True`` reads it into memory. ``by_row=True`` ignores a mapping
    from tokens to rows. ``npy_dtype="bf16"`` is for .npy files of two-byte numbers
    without a type.
    """
    return Table(path, tensor, lenient=lenient, copy=copy, by_row=by_row, npy_dtype=npy_dtype)
