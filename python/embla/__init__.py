# SPDX-License-Identifier: Apache-2.0
"""Embla: the embedding layer of a language model, as a library.

Open a table of any format, and use its rows::

    import embla
    t = embla.open("glove.txt")         # also safetensors, GGUF, npy, fastText, a model's folder
    t["king"]                           # a vector, float32
    t.near("king", top=5)               # [Hit(word='queen', id=.., score=..), ..]
    t.lookup(ids, out=buffer)           # any shape of int32 or int64, into your memory
    t.save("king.gguf", dtype="q8_0")   # an account of every row

Text::

    m = embla.Encoder("potion-base-8M")           # a local folder; nothing is downloaded
    m.encode(["a text", "another"])               # (2, dim)
    embla.Tokenizer("tokenizer.json").encode("a text")
    embla.Index(m, texts).search("a question", top=3)

Learn::

    wv = embla.words("corpus.txt", method="skipgram", dim=100, seed=1)
    run = embla.train("names.txt", "names", preset="microgpt")
    run.model.generate(count=5, seed=1)
    embla.play(t, file="play.html")               # a page to explore them in

Giant tables::

    embla.Ngram.model("qwen3.8-flash-next").rows([100, 200])
    with embla.Store("big/", place="shared") as store:
        store.lookup(rows, out=buffer)

Every error is an :class:`embla.Error`; a missing word is also a ``KeyError``, an id
outside the table an ``IndexError``. ``python -m embla`` runs the program.
"""

from __future__ import annotations

from . import _embla
from ._embla import (Array, Detokenizer, Optim, Scatter, Ticket, Tickets, cost, cost_presets, dtypes, facts,
                     logits, loss, pool, sinusoid)
from ._doctor import Diagnosis, Finding, doctor
from ._errors import (ArgumentError, BusyError, Error, FileError, FormatError, MissingFileError,
                      NotFoundError, OutOfMemoryError, RangeError, ShapeError, StoppedError,
                      UnsupportedError)
from ._learn import Film, Model, Prediction, Predictions, Report, Run, train, words
from ._play import Page, play
from ._store import Ngram, Store
from ._rows import Comparison, Hit, Hits, Vocab
from ._table import Account, Checkpoint, Points, Table, open
from ._text import Encoder, Found, Index, Tokenizer

__version__: str = facts()["version"]

__all__ = [
    "Account", "ArgumentError", "Array", "BusyError", "Checkpoint", "Comparison", "Detokenizer", "Diagnosis",
    "Encoder",
    "Error", "FileError", "Film", "Finding", "FormatError", "Found", "Hit", "Hits", "Index", "MissingFileError", "Model", "Ngram",
    "NotFoundError", "Optim", "OutOfMemoryError", "Page", "Points", "Prediction", "Predictions", "RangeError", "Report", "Run",
    "Scatter", "ShapeError", "StoppedError", "Store", "Table", "Ticket", "Tickets", "Tokenizer", "UnsupportedError",
    "Vocab", "cost", "cost_presets", "doctor", "dtypes", "facts", "logits", "loss", "open", "play", "pool",
    "sinusoid", "train", "words",
]
