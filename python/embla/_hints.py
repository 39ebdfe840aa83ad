# SPDX-License-Identifier: Apache-2.0
"""Texts that help: the right name of an argument, the repr of an array.

The module in C calls :func:`unknown` and :func:`array`, so that a wrong name gets the
same message whether the function is in C or in Python.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import os
import re
import types
from typing import Any, Iterator, Sequence, TypeVar

from ._errors import Error

T = TypeVar("T")

# What other packages (gensim, fastText, PyTorch, Transformers, scikit-learn, ..) call an
# argument, and what it is here: the first of these that the function has.
FOREIGN: dict[str, tuple[str, ...]] = {
    "size": ("dim", "bytes"), "vector_size": ("dim",), "vector_dim": ("dim",), "dims": ("dim",),
    "dimension": ("dim",), "dimensions": ("dim",), "ndim": ("dim",), "n_embd": ("dim",),
    "embedding_dim": ("dim",), "embedding_size": ("dim",), "embed_dim": ("dim",),
    "d_model": ("dim",), "hidden_size": ("dim",), "truncate_dim": ("dim",),
    "topn": ("top",), "top_n": ("top",), "top_k": ("top",), "topk": ("top",), "k": ("top", "top_k"),
    "n_neighbors": ("top",), "limit": ("rows", "top", "lines", "max_tokens"),
    "restrict_vocab": ("rows",), "num_embeddings": ("rows",), "vocab_size": ("rows", "words"),
    "positive": ("plus",), "negative": ("negatives", "minus"), "metric": ("measure",),
    "similarity": ("measure",), "case_insensitive": ("exact_case",),
    "workers": ("threads",), "n_jobs": ("threads",), "num_threads": ("threads",),
    "num_workers": ("threads",), "thread": ("threads",),
    "epoch": ("epochs",), "iter": ("epochs", "steps"), "iterations": ("epochs", "steps"),
    "n_iter": ("epochs", "steps"), "num_epochs": ("epochs",), "num_train_epochs": ("epochs",),
    "max_iters": ("steps",), "max_iter": ("steps",), "max_steps": ("steps",),
    "num_steps": ("steps",), "lr": ("rate",), "alpha": ("rate",), "learning_rate": ("rate",),
    "min_lr": ("final_rate",), "min_alpha": ("final_rate",), "final_lr": ("final_rate",),
    "lr_scheduler": ("schedule",), "scheduler": ("schedule",), "lr_scheduler_type": ("schedule",),
    "warmup": ("warm_up",), "warmup_steps": ("warm_up",), "warmup_iters": ("warm_up",),
    "batch_size": ("batch",), "block_size": ("length",), "context_length": ("length",),
    "n_ctx": ("length",), "seq_len": ("length",), "n_positions": ("length",),
    "n_layer": ("layers",), "n_layers": ("layers",), "num_layers": ("layers",),
    "n_head": ("heads",), "n_heads": ("heads",), "num_heads": ("heads",),
    "weight_decay": ("decay",), "grad_clip": ("clip",), "max_grad_norm": ("clip",),
    "random_state": ("seed",), "random_seed": ("seed",), "rng": ("seed",),
    "ws": ("window",), "window_size": ("window",), "context": ("window", "length"),
    "neg": ("negatives",), "ns": ("negatives",), "negative_samples": ("negatives",),
    "mincount": ("min_count",), "minCount": ("min_count",), "min_freq": ("min_count",),
    "minn": ("min_gram",), "min_n": ("min_gram",), "maxn": ("max_gram",), "max_n": ("max_gram",),
    "bucket": ("buckets",), "t": ("sample",), "sg": ("method",), "model": ("method", "path"),
    "max_vocab_size": ("max_words",), "max_final_vocab": ("max_words",),
    "sentences": ("text",), "corpus_file": ("text",), "corpus": ("text", "texts"),
    "input": ("text",), "texts": ("text", "texts"), "inputs": ("text",), "documents": ("texts",),
    "query": ("question", "query"), "queries": ("question", "query"),
    "callback": ("progress",), "callbacks": ("progress",), "show_progress": ("progress",),
    "show_progress_bar": ("progress",), "verbose": ("progress",), "tqdm": ("progress",),
    "output": ("out", "path"), "output_dir": ("out", "path"), "out_dir": ("out", "path"),
    "output_path": ("out", "path"), "save_path": ("out", "path"), "resume_from_checkpoint": ("resume",),
    "fname": ("path",), "filename": ("path",), "file": ("path",), "filepath": ("path",),
    "folder": ("path", "out"), "model_name_or_path": ("path",), "model_path": ("path",),
    "force": ("overwrite",), "exist_ok": ("overwrite",), "fvocab": ("format",),
    "quantize": ("dtype",), "quantization": ("dtype",), "torch_dtype": ("dtype",),
    "precision": ("dtype",), "max_length": ("max_tokens", "tokens"),
    "max_seq_length": ("max_tokens",), "truncate": ("overflow",), "truncation": ("overflow",),
    "normalize_embeddings": ("normalize",), "add_special_tokens": ("special",),
    "return_offsets": ("offsets",), "return_offsets_mapping": ("offsets",),
    "skip_special_tokens": ("keep_special",), "max_new_tokens": ("tokens",),
    "num_samples": ("count",), "num_return_sequences": ("count",), "n": ("count", "top"),
    "temp": ("temperature",), "mode": ("kind", "place"), "pooling": ("kind",),
    "placement": ("place",), "betas": ("beta1", "beta2"), "eps": ("epsilon",),
    "label_smoothing": ("smoothing",), "name": ("tensor",), "mmap": ("copy",),
}


def unknown(function: str, name: str, known: Sequence[str]) -> str:
    """The message for an argument that a function does not have."""
    meant = [n for n in FOREIGN.get(name, ()) if n in known][:1]
    meant = meant or difflib.get_close_matches(name.lower(), known, 2, 0.7)
    if meant:
        return f"{function}() has no argument '{name}'; did you mean {' or '.join(meant)}?"
    return f"{function}() has no argument '{name}'; it has {', '.join(known) or 'none'}"


def _checked(function: Any, name: str) -> Any:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(function).parameters.values()
    known = [p.name for p in parameters if p.kind in kinds and p.name not in ("self", "cls")]
    names = frozenset(known)

    @functools.wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        if not names.issuperset(named):
            wrong = next(n for n in named if n not in names)
            raise TypeError(unknown(name, wrong, known))
        return function(*values, **named)

    return call


def named(thing: T) -> T:
    """A decorator of functions and classes: an unknown argument gets a message that helps.

    Of a class, the functions with two or more arguments that may be left out are decorated.
    The others are small and often called.
    """
    made: Any = thing
    if not isinstance(thing, type):
        return _checked(made, made.__name__)  # type: ignore[no-any-return]
    made_by = ("__new__", "__init__")
    for name, value in list(vars(thing).items()):
        inner = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if not isinstance(inner, types.FunctionType) or name.startswith("_") and name not in made_by:
            continue
        optional = [p for p in inspect.signature(inner).parameters.values()
                    if p.default is not inspect.Parameter.empty]
        if len(optional) >= 2:
            done = _checked(inner, thing.__name__ if name in made_by else name)
            setattr(thing, name, done if inner is value else type(value)(done))
    return thing


@contextlib.contextmanager
def renamed(names: dict[str, str]) -> Iterator[None]:
    """Errors of the library name what the caller knows: arguments of Python, no temporary file."""
    try:
        yield
    except Error as error:
        said = str(error)
        for theirs, ours in names.items():
            said = re.sub(rf"(?<!\w){re.escape(theirs)}(?!\w)", lambda _: ours, said)
        if said == str(error):
            raise
        raise type(error)(said) from None


def needs_path(function: str, value: Any) -> None:
    """Raises a TypeError if value is no path; for an array it says what takes arrays."""
    if isinstance(value, (str, bytes, os.PathLike)):
        return
    hint = ""
    if isinstance(value, (list, tuple)) or hasattr(value, "__dlpack__") or _is_buffer(value):
        hint = ("; embla.Table.over(array) makes a table of an array, "
                "embla.Table.of_words(words, array) one with words")
    kind = f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")
    raise TypeError(f"{function}() opens a file: path must be a str or os.PathLike, not {kind}{hint}")


def _is_buffer(value: Any) -> bool:
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _numbers(array: Any, most: int) -> str:
    """The numbers of an array, the middle left out."""
    count = len(array)
    shown = range(count) if count <= 2 * most else [*range(most), *range(count - most, count)]
    inner = len(array.shape) > 1
    texts = [_numbers(array[i], most) if inner else _number(array[i]) for i in shown]
    if count > 2 * most:
        texts.insert(most, "..")
    return f"[{', '.join(texts)}]"


def array(array: Any, numpy: bool) -> str:
    """The repr of an Array; numpy says whether NumPy is installed."""
    shape = " x ".join(str(n) for n in array.shape)
    rest = "" if numpy else "; install numpy to compute with it"
    return f"<embla.Array of {shape} {array.dtype}: {_numbers(array, 3 if len(array.shape) == 1 else 2)}{rest}>"
