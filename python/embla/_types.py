# SPDX-License-Identifier: Apache-2.0
"""Types of arguments and results, for type checkers. Nothing here needs NumPy at run time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Protocol, Sequence, TypedDict, Union

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Buffer

    Vector: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float32]]
    Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float32]]
    Floats: TypeAlias = NDArray[np.float32]
    Doubles: TypeAlias = NDArray[np.float64]
    Ids: TypeAlias = NDArray[np.int64]
    Labels: TypeAlias = NDArray[np.int32]

    # One row number, and row numbers of any shape.
    Id: TypeAlias = Union[int, "np.integer[Any]"]
    IdsLike: TypeAlias = Union[Id, Sequence[Id], Sequence[Sequence[Id]],
                               Sequence[Sequence[Sequence[Id]]], Buffer, "DLPack"]
    # One vector, several vectors, and vectors of any shape.
    VectorLike: TypeAlias = Union[Sequence[float], "np.ndarray[tuple[int], np.dtype[np.floating[Any]]]"]
    MatrixLike: TypeAlias = Union[Sequence[Sequence[float]], Sequence["Vector"],
                                  "np.ndarray[tuple[int, int], np.dtype[np.floating[Any]]]"]
    # An array whose number of axes the type checker does not know: its shape is tuple[Any, ..],
    # which fits this shape, too. An array that is known to have 1 or 2 axes does not fit.
    AnyRank: TypeAlias = "np.ndarray[tuple[int, int, int, int, int, int, int], np.dtype[np.floating[Any]]]"
    FloatsLike: TypeAlias = Union[VectorLike, MatrixLike, Sequence[Sequence[Sequence[float]]],
                                  Buffer, "DLPack"]

Path = Union[str, "os.PathLike[str]"]
Word = Union[str, bytes, int]
Progress = Callable[[str, int, int], Any]


class DLPack(Protocol):
    """An array or tensor of another package, on the CPU."""

    def __dlpack__(self) -> Any: ...
    def __dlpack_device__(self) -> Any: ...


class Facts(TypedDict):
    """Version, kernels and engine in use."""

    version: str
    kernels: str
    kernel_sets: list[str]
    build: str
    engine: str
    engine_warning: str | None
    threads_max: int


class Tensor(TypedDict):
    """A tensor of a checkpoint."""

    name: str
    type: str
    dtype: str | None
    role: str | None
    shape: tuple[int, ...]
    bytes: int
    offset: int
    file: str | None


class CheckpointFacts(TypedDict):
    """How a model uses its tables."""

    architecture: str | None
    architecture_why: str | None
    tokens: int
    tokens_why: str | None
    mapping: str | None
    weights: str | None
    first_position: int
    first_position_why: str | None
    scale: float
    scale_why: str | None


class PlayPage(TypedDict):
    """A page of embla.play, and what of the model is in it."""

    page: bytes
    model: bool
    rows: int
    of: int
    dim: int
    dtype: str
    stored: str


class Tie(TypedDict):
    """Whether the head uses the token table, and what decided."""

    kind: str
    rule: str | None
    flag: str | None
    conflict: bool
    sampled: bool
    rows_compared: int
    difference: float


class Line(TypedDict):
    """What a conversion did to one tensor."""

    name: str
    new_name: str | None
    type: str
    new_type: str | None
    why: str | None
    table: bool
    rows: int
    new_rows: int
    same: int
    rounded: int
    nonfinite: int
    overflowed: int
    vanished: int
    difference: float
    bytes: int
    checksum: str | None


class Conversion(TypedDict):
    """What a conversion did."""

    lines: list[Line]
    notes: list[str]
    format: str
    bytes: int


class EvalPart(TypedDict):
    """The score of one part of a file of analogies, or of a file of pairs."""

    name: str | None
    syntactic: bool
    asked: int
    covered: int
    correct: int
    spearman: float
    pearson: float


class Eval(TypedDict):
    """The scores of a table on a file; missing says how often a word without a row occurs."""

    parts: list[EvalPart]
    missing: dict[str, int]
    kind: str


class HealthGroup(TypedDict):
    """Rows that are nearly the same."""

    rows: Ids
    norm_min: float
    norm_max: float
    cosine_min: float


class Health(TypedDict):
    """What is wrong with rows."""

    rows: int
    dim: int
    padding: int
    norm_min: float
    norm_max: float
    norm_mean: float
    norm_deviation: float
    norm_quantiles: Doubles
    norm_bins: Ids
    anisotropy: float
    mean_norm: float
    from_mean: float
    from_mean_deviation: float
    uncertain: int
    nonfinite: Ids
    zero: Ids
    unused: Ids
    duplicates: list[tuple[int, int]]
    groups: list[HealthGroup]
    ranked_by: str
    ranked: tuple[Ids, Doubles]


class Spectrum(TypedDict):
    """Singular values, and how many directions a table uses."""

    singular: Doubles
    rows: int
    nonfinite: int
    effective_rank: float
    participation: float
    stable_rank: float
    rank_50: int
    rank_90: int


class Change(TypedDict):
    """A row that differs from a row of another table."""

    row: int
    other: int
    distance: float
    cosine: float
    difference: float


class Diff(TypedDict):
    """How two tables differ."""

    rows: tuple[int, int]
    compared: int
    same: int
    changed: int
    only: tuple[int, int]
    nonfinite: int
    difference: float
    distance_mean: float
    cosine_mean: float
    changes: list[Change]


class TokenizerInfo(TypedDict):
    """What a tokenizer is made of."""

    kind: str
    source: str | None
    pipeline: str | None
    vocab: int
    added: int
    tokens: int
    merges: int
    byte_level: bool
    unknown: int
    max_tokens: int


class EncoderInfo(TypedDict):
    """What an encoder is made of."""

    compat: str
    why: str | None
    rows: int
    dim: int
    dtype: str
    normalize: bool
    mapping: bool
    weights: bool
    components: int
    subwords: bool
    counts: bool
    tokens: int


class IndexInfo(TypedDict):
    """Lines, rows, bytes, dim and dtype of an index."""

    lines: int
    rows: int
    bytes: int
    text_bytes: int
    dim: int
    dtype: str
    stored: bool


class FitReport(TypedDict):
    """What a fit did."""

    lines: int
    used: int
    tokens: int
    unknown: int
    components: int
    share: float
    a: float
    weights: str | None


class ModelShape(TypedDict):
    """The sizes of a language model."""

    vocab: int
    dim: int
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    positions: int
    tied: bool
    parameters: int
    family: str


class Saved(TypedDict):
    """The step and the note of a saved training."""

    step: int
    steps: int
    note: str


class StoreInfo(TypedDict):
    """Rows, dim, dtype and bytes of a store, and where the rows are."""

    rows: int
    dim: int
    dtype: str
    row_bytes: int
    parts: int
    placement: str
    bytes: int
    huge_bytes: int
    resident: int
    shared: str | None
    built: bool


class NgramInfo(TypedDict):
    """What an n-gram hasher is made of."""

    kind: str
    tokens: int
    vocab: int
    rows: int
    used: int
    rows_per_token: int
    history: int
    orders: int
    rows_per_ngram: int
    layer: int
    pad: int
    eos: int


class Verification(TypedDict):
    """How many rows were compared with their files, and how many differ."""

    rows: int
    different: int
    first: int


class Cost(TypedDict):
    """Parameters, bytes and operations of a model's tables; a pair is (parameters, bytes)."""

    tokens: tuple[int, int]
    positions: tuple[int, int]
    head: tuple[int, int]
    ngram: tuple[int, int]
    trunk: tuple[int, int]
    inputs: tuple[int, int]
    tables: tuple[int, int]
    total: tuple[int, int]
    lookup_bytes: int
    one_hot_madds: int
    head_madds: int
    head_bytes: int
    read_bytes: int
    head_layers: float
    notes: list[str]
