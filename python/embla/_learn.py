# SPDX-License-Identifier: Apache-2.0
"""Training: language models around a table, and word vectors from raw text."""

from __future__ import annotations

import html
import operator
import os
import shutil
import tempfile
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterable, NamedTuple, Sequence, Union

from . import _embla
from ._bar import Bar, shown
from ._errors import ArgumentError, Error, NotFoundError, UnsupportedError
from ._hints import named, renamed
from ._rows import Vocab
from ._table import Checkpoint, Table
from ._text import Tokenizer
from ._types import Path

if TYPE_CHECKING:
    from typing_extensions import Self


class Report(NamedTuple):
    """One step of a training. validation is None except where it was computed."""

    step: int
    steps: int
    loss: float
    validation: float | None
    rate: float
    norm: float
    tokens: int


class Film:
    """A page that shows how rows moved in a training. A notebook shows it in a frame."""

    def __init__(self, path: Path) -> None:
        self.path = os.fspath(path)

    def _repr_html_(self) -> str:
        with open(self.path, encoding="utf-8") as file:
            page = html.escape(file.read())
        return ('<iframe sandbox="allow-scripts" width="100%" height="640" style="border: 0" '
                f'title="How the rows moved" srcdoc="{page}"></iframe>')

    def __repr__(self) -> str:
        return f"Film({self.path!r})"


class _Writer:
    """What a model writes while it learns: the texts of the program's films."""

    def __init__(self, training: _embla.Train, folder: str, threads: int) -> None:
        self.training, self.threads = training, threads
        self.tokenizer: Tokenizer | None = None
        try:
            self.tokenizer = Tokenizer(folder)
        except Error:
            pass  # a file of tokens has no words
        self.ends = [] if training.bos is None else [training.bos]
        self.first = self._first(training.bos)

    def _first(self, begin: int | None) -> int:
        """The token before a text: the one that begins a document, else a line end, else token 0."""
        if begin is not None or self.tokenizer is None:
            return begin or 0
        try:
            return [*self.tokenizer.encode("\n"), 0][0]
        except Error:
            return 0  # the text has no line end

    def text(self) -> str:
        """Up to three texts, one on each line, of 48 tokens together. Equal weights write equal texts."""
        run, left = self.training, 48
        texts: list[str] = []
        while left > 0 and len(texts) < 3:
            drawn, stopped = run._generate(
                [self.first], min(left, run.positions), ends=self.ends, temperature=0.5,
                seed=(run.seed + len(texts)) % 2**64, threads=self.threads)
            texts.append(self.tokenizer.decode(drawn) if self.tokenizer else " ".join(map(str, drawn)))
            left -= len(drawn) + (stopped == "end")
            if stopped != "end":
                break
        return "\n".join(texts)


class _Filming:
    """Takes the moments of a film. Without a path it does nothing."""

    TEXT_EVERY = 15  # moments

    def __init__(self, path: Path | None) -> None:
        self.path = None if path is None else os.fspath(path)
        self.film: _embla.Film | None = None
        self.writer: _Writer | None = None
        self.steps = 0
        if self.path is None:
            return
        if not self.path.lower().endswith(".html"):
            raise ArgumentError(f"film is {self.path!r}; a film is a page, its name must end in .html")
        if os.path.lexists(self.path):
            raise ArgumentError(f"{self.path} already exists; choose another name for the film")
        if not os.path.isdir(os.path.dirname(self.path) or "."):
            raise ArgumentError(f"{self.path} cannot be written: its folder does not exist")

    def begin(self, training: _embla.Train | _embla.Wordvec, steps: int, at: int, text: str,
              writer: _Writer | None = None) -> None:
        if self.path is not None:
            self.film = _embla.Film(training, steps=steps, title=os.path.basename(text) or text)
            self.writer, self.steps = writer, steps
            self._add(self.film, at)

    def _add(self, film: _embla.Film, step: int, now: bool = False) -> None:
        writes = now or step >= self.steps or film.moments % self.TEXT_EVERY == 0
        film.add(step, self.writer.text() if self.writer is not None and writes else None)

    def step(self, step: int, loss: float) -> None:
        if self.film is not None and self.film.due(step, loss):
            self._add(self.film, step)

    def end(self, step: int) -> Film | None:
        if self.film is None or self.path is None:
            return None
        if self.film.step < step:
            self._add(self.film, step, now=True)
        self.film.write(self.path)
        return Film(self.path)


class Run(NamedTuple):
    """A training that has ended: its folder, the steps made, the losses of this call, the film."""

    folder: str
    steps: int
    losses: list[float]
    validation: float | None
    film: Film | None = None

    @property
    def model(self) -> Model:
        """The trained model."""
        return Model(self.folder)


class Prediction(NamedTuple):
    """A token that may come next: its word (None if it has none), its id, logit and probability."""

    word: str | None
    id: int
    logit: float
    probability: float


class Predictions(list[Prediction]):
    """The next tokens, the most probable first. A notebook shows them as a table."""

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(str(p.word if p.word is not None else p.id))}</td>"
            f"<td>{p.id}</td><td>{p.logit:.2f}</td><td>{p.probability:.4f}</td></tr>"
            for p in self
        )
        return ("<table><tr><th>word</th><th>id</th><th>logit</th><th>probability</th></tr>"
                f"{rows}</table>")


def _note(**entries: object) -> str:
    for key, value in entries.items():
        if "\n" in str(value):
            raise ArgumentError(f"{key} contains a line end: {value!r}")
    return "".join(f"{key}={value}\n" for key, value in entries.items())


def _noted(note: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in note.splitlines() if "=" in line)


def _check_counts(**numbers: int) -> None:
    for name, number in numbers.items():
        if not 0 <= operator.index(number) < 2**63:
            given = number if abs(number) < 2**64 else "a number of more than 64 bits"
            raise ArgumentError(f"{name} is {given}; it must be between 0 and {2**63 - 1}")


@named
def train(text: Path | None = None, out: Path = "", *, preset: str = "gpt2-mini",
          steps: int = 0, resume: bool = False,
          progress: Callable[[Report], Any] | bool | None = None,
          save_every: int = 0, keep: int = 2, threads: int = 0, dim: int | None = None,
          layers: int | None = None, heads: int | None = None, batch: int | None = None,
          length: int | None = None, rate: float | None = None, final_rate: float | None = None,
          warm_up: int | None = None, schedule: str | None = None, dropout: float | None = None,
          clip: float | None = None, decay: float | None = None, unit: str | None = None,
          words: int | None = None, documents: bool | None = None,
          validation: float | None = None, seed: int | None = None,
          bf16: bool | None = None, positions: str | None = None, tied: bool | None = None,
          engine: str | None = None, film: Path | None = None) -> Run:
    """Trains a model on a text file and saves it to the folder out.

    film is the name of a new .html file: a page that shows how the rows move, those of the
    whole table or the first 300, and what the model writes meanwhile. It is written at the
    end, also after Ctrl-C; the film of the result shows it in a notebook.

    progress is called after every step with a :class:`Report`, in place of the progress
    bar; if it returns False, the training ends early. progress=False means neither. Ctrl-C,
    and an exception of progress, save the training before they are raised again:
    ``train(out=folder, resume=True)`` continues it, with the same bits as if it had not been
    interrupted. ``embla train --resume`` does, too.

    A training that has diverged (NaN, infinities) is kept, and raises :class:`RangeError`.

    The arguments from dim on are those of a new training. None means the value of the
    preset; dim without heads takes as many heads as divide it. unit is "characters",
    "bytes", "words" or "tokens". positions is "learned", "sinusoidal", "rotary" or "none";
    tied means that the token table is also the head. engine="none" gives the same bits on
    every CPU, "library" uses the matrix library, "auto" chooses by the size of the model.
    """
    options: Any = {name: value for name, value in (
        ("dim", dim), ("layers", layers), ("heads", heads), ("batch", batch), ("length", length),
        ("rate", rate), ("final_rate", final_rate), ("warm_up", warm_up), ("schedule", schedule),
        ("dropout", dropout), ("clip", clip), ("decay", decay), ("unit", unit), ("words", words),
        ("documents", documents), ("validation", validation), ("seed", seed), ("bf16", bf16),
        ("positions", positions), ("untied", None if tied is None else int(not tied)),
        ("engine", engine),
    ) if value is not None}
    for name, value in options.items():
        if not isinstance(value, str) and not value >= 0:  # also a NaN
            given = "below -2**64" if value < -2**64 else value
            raise ArgumentError(f"{name} is {given}; it must be 0 or greater")
    if not out:
        raise ArgumentError("train needs out, the folder for the model")
    _check_counts(steps=steps, save_every=save_every, keep=keep)
    filming = _Filming(film)
    folder = os.fspath(out)
    newest = _embla.Train.newest(os.path.join(folder, "checkpoints"))
    if resume:
        if newest is None:
            raise NotFoundError(f"{folder} has no training to resume")
        saved = _embla.Train.saved(newest)
        noted = _noted(saved["note"])
        source = os.fspath(text) if text is not None else noted.get("text", "")
        if options:
            names = ["tied" if name == "untied" else name for name in options]
            raise ArgumentError(f"resume keeps the settings of the training; remove {', '.join(names)}")
        run = _embla.Train.resume(newest, source, spread=float(noted.get("spread", 0)),
                                  threads=threads)
        preset = noted.get("preset", preset)
        steps = steps or int(noted.get("steps", run.total))
    else:
        if text is None:
            raise ArgumentError("train needs a text, or resume=True")
        if newest is not None or os.path.exists(os.path.join(folder, "model.safetensors")):
            raise ArgumentError(f"{folder} already contains a training; use resume=True to continue "
                                "it, or choose another folder")
        source = os.path.abspath(os.fspath(text))
        run = _embla.Train(source, preset, steps=steps, threads=threads, **options)
        steps = steps or run.total
    every = max(1, steps // 10)
    note = _note(text=source, preset=preset, **{"from": ""}, steps=steps, validate_every=every,
                 save_every=save_every, keep=keep, spread=repr(run.spread), plot="", watch="")
    if not resume:
        run.save(folder, note=note, keep=keep)  # an error in writing shows at once
    filming.begin(run, steps, run.steps, source, _Writer(run, folder, threads) if film else None)
    filmed: Film | None = None
    losses: list[float] = []
    validated: float | None = None
    try:
        with shown(progress) as tell:
            while run.steps < steps:
                step, loss, rate, norm, tokens, _ = run.step()
                losses.append(loss)
                filming.step(run.steps, loss)
                measured = None
                if run.steps % every == 0 or run.steps == steps:
                    measured = run.validate(20 if run.steps == steps else 4)
                    validated = validated if measured is None else measured
                if save_every and run.steps % save_every == 0 and run.steps < steps:
                    run.save(folder, note=note, keep=keep)
                if isinstance(tell, Bar):
                    tell("training", run.steps, steps, f"loss {loss:.4f}")
                elif tell is not None:
                    report = Report(step, steps, loss, measured, rate, norm, tokens)
                    if tell(report) is False:
                        break
    except BaseException as error:
        error.add_note(f"The training is saved: embla.train(out={folder!r}, resume=True) continues it.")
        raise
    finally:
        run.save(folder, note=note, keep=keep)
        filmed = filming.end(run.steps)
    run.check()
    return Run(folder, run.steps, losses, validated, filmed)


@named
class Model(_embla.Gpt):
    """A language model: a folder of :func:`train`, GPT-2 or Llama, or a file of llama2.c.

    It is pickled by its path.

    >>> Model("names").generate(count=5, seed=1)          # doctest: +SKIP
    """

    path: str
    checkpoint: Checkpoint
    _tokenizer: Tokenizer | None
    _vocab: Vocab | None
    _special: tuple[int | None, list[int], bool]

    def __new__(cls, path: Path) -> Self:
        checkpoint = Checkpoint(path)
        self = super().__new__(cls, checkpoint)
        self.path = os.fspath(path)
        self.checkpoint = checkpoint
        self._tokenizer = None
        try:
            self._tokenizer = Tokenizer(path)
        except Error:
            pass  # a file of llama2.c has words, but no tokenizer
        self._vocab = checkpoint.words()
        self._special = self._ends(checkpoint)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (os.path.abspath(self.path),)

    @property
    def table(self) -> Table:
        """The token table; it shares the model's memory."""
        table = self._table(Table)
        table._words, table._asked = self._vocab, True
        table._model = os.path.abspath(self.path)
        return table

    @property
    def words(self) -> Vocab | None:
        """The words of the tokens."""
        return self._vocab

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text."""
        if self._tokenizer is not None:
            return self._tokenizer.encode(text)
        raise UnsupportedError(f"{self.path} has no tokenizer; give the prompt as tokens")

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens."""
        if self._tokenizer is not None:
            return self._tokenizer.decode(list(tokens))
        words = [None if self._vocab is None else self._vocab.word(t) for t in tokens]
        parts = bytearray()
        for token, word in zip(tokens, words):
            if word is None:
                parts += f"<{token}>".encode()
            elif len(word) == 6 and word.startswith("<0x") and word.endswith(">"):
                parts.append(int(word[3:5], 16))
            else:
                parts += word.replace("\u2581", " ").encode("utf-8", "surrogateescape")
        return parts.decode("utf-8", "replace")

    def _prompt(self, prompt: str | Sequence[int] | None) -> list[int]:
        begin, _, leads = self._special
        if prompt is None:
            return [0 if begin is None else begin]
        if isinstance(prompt, str):
            return ([begin] if begin is not None and leads else []) + self.tokens(prompt)
        ids = list(prompt)
        if any(isinstance(token, str) for token in ids):
            raise TypeError("a prompt is one text, or a list of token numbers, not a list of texts")
        return ids

    def predict(self, text: str | Sequence[int] | None = None, top: int = 10, *,
                temperature: float = 1.0, threads: int = 0) -> Predictions:
        """The most probable tokens after a text: a text, a list of tokens, or None for the beginning.

        The temperature divides the logits before the softmax. It changes probabilities, not
        their order.
        """
        found = self._predict(self._prompt(text), top, temperature=temperature, threads=threads)
        return Predictions(Prediction(None if self._vocab is None else self._vocab.word(token),
                                      token, logit, probability)
                           for token, logit, probability in found)

    def generate(self, prompt: str | Sequence[int] | None = None, *, count: int = 1,
                 tokens: int = 256, temperature: float = 0.8, top_k: int = 0, top_p: float = 0.0,
                 min_p: float = 0.0, seed: int = 0, threads: int = 0) -> list[str]:
        """Texts that continue a prompt: a text, a list of tokens, or None for the beginning.

        The same seed gives the same texts, for any number of threads.
        """
        _check_counts(count=count)
        ids, ends = self._prompt(prompt), self._special[1]
        texts = []
        for n in range(count):
            drawn, _ = self._generate(ids, tokens, ends=ends, temperature=temperature, top_k=top_k,
                                      top_p=top_p, min_p=min_p, seed=seed, text=n, threads=threads)
            text = self.text(drawn)
            first = self._vocab.word(drawn[0]) if self._vocab is not None and drawn else None
            if prompt is None and first is not None and first.startswith(("\u2581", " ")):
                text = text.removeprefix(" ")  # the mark of a first word is not a space
            texts.append(text)
        return texts

    def __repr__(self) -> str:
        shape = self.shape()
        return (f"<embla.Model {shape['family']}, {shape['parameters']:,} parameters, "
                f"{shape['vocab']:,} tokens>")


Corpus = Union[Path, Iterable[Union[str, Sequence[str]]]]


def _write_corpus(corpus: Iterable[str | Sequence[str]], path: str) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        for sentence in corpus:
            file.write(sentence if isinstance(sentence, str) else " ".join(sentence))
            file.write("\n")
        if file.tell() == 0:
            raise ArgumentError("there are no sentences: the list is empty")


@named
def words(text: Corpus, out: Path | None = None, *, method: str = "skipgram",
          progress: Callable[[int, int, float], Any] | bool | None = None, resume: bool = False,
          dim: int = 100, window: int = 5, negatives: int = 5, epochs: int = 5,
          rate: float = 0.05, sample: float = 1e-4, min_count: int = 5, max_words: int = 0,
          min_gram: int = 0, max_gram: int = 0, buckets: int = 2_000_000, phrases: float = 0.0,
          clean: str = "plain", seed: int = 0, hogwild: bool = False, threads: int = 0,
          film: Path | None = None) -> Table:
    """Learns word vectors from a text file, a folder of texts, or an iterable of sentences.

    Returns a table with words. With out (a .safetensors file) the result is written there, and
    Ctrl-C saves the state beside it: the same call with resume=True continues. progress is
    called as progress(step, steps, loss) in place of the progress bar; if it returns False,
    training ends early. progress=False means neither.

    method is "skipgram" or "cbow". Words above the share sample of the text are left out at
    random; a negative sample leaves out none. min_gram and max_gram are the lengths of
    character n-grams, as in fastText. clean is "plain", "words" or "letters". 0 means the
    default of an argument.

    film is the name of a new .html file: a page that shows how the rows of the 300 most frequent
    words move. It is written at the end, also after Ctrl-C. ``embla.Film(name)`` shows it in a
    notebook.
    """
    filming = _Filming(film)
    folder = tempfile.mkdtemp(prefix="embla-")
    try:
        if isinstance(text, (str, os.PathLike)):
            source = os.fspath(text)
        else:
            source = os.path.join(folder, "corpus.txt")
            _write_corpus(text, source)
        result = os.fspath(out) if out is not None else os.path.join(folder, "words.safetensors")
        state = result + ".state"
        if not result.endswith(".safetensors"):
            raise ArgumentError(f"out is {result!r}; its name must end in .safetensors, use save() "
                                "of the result for other formats")
        with shown(progress) as tell:
            with renamed({os.path.join(folder, "corpus.txt"): "the list of sentences"}):
                run = _embla.Wordvec(source, method=method, dim=dim, window=window,
                                     negatives=negatives, epochs=epochs, rate=rate, sample=sample,
                                     min_count=min_count, max_words=max_words, min_gram=min_gram,
                                     max_gram=max_gram, buckets=buckets, phrases=phrases, clean=clean,
                                     seed=seed, hogwild=hogwild, threads=threads,
                                     progress=tell if isinstance(tell, Bar) else None)
            if resume:
                run.load(state)
            done, total, _, _, loss = run.steps(0)
            filming.begin(run, total, done, source)
            try:
                while done < total:
                    done, total, _, _, loss = run.steps(max(1, total // 1000))
                    filming.step(done, loss)
                    if isinstance(tell, Bar):
                        tell("training", done, total, f"loss {loss:.4f}")
                    elif tell is not None and tell(done, total, loss) is False:
                        break
            except BaseException:
                if out is not None:
                    run.save(state)
                filming.end(done)
                raise
        filming.end(done)
        run.write(result)
        if os.path.exists(state):
            os.remove(state)
        table = Table(result)
    except BaseException:
        shutil.rmtree(folder, True)
        raise
    if out is None:
        table._passing = True
        weakref.finalize(table, shutil.rmtree, folder, True)  # its file lives as long as it does
    else:
        shutil.rmtree(folder, True)
    return table
