# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, progress functions and exceptions in calls that search, tokenize and encode."""

import pathlib
import signal
import time

import pytest

import embla
from test_bar import run

DEMO = pathlib.Path(embla.__file__).parent / "demo"
np = pytest.importorskip("numpy")

SENTENCE = "the cat and the dog see 12 ships, not Xylophones! "
NAMES = "emmaoliviaavaisabellasophiacharlotte"


def calls():
    """name: a function that does n units of work, with keyword arguments."""
    table = embla.Table.over(np.random.default_rng(0).standard_normal((20000, 64), dtype=np.float32))
    encoder = embla.Encoder(DEMO / "words.vec")
    tokenizer = embla.Tokenizer(DEMO / "names")
    index = embla.Index(encoder, ["the cat", "the dog"])
    vectors = np.asarray(table.view())

    def queries(n):
        return np.resize(vectors, (100 * n, 64))

    return {
        "near": (queries, table.near),
        "Tokenizer.encode": (lambda n: [NAMES] * (2000 * n), tokenizer.encode),
        "Tokenizer.encode of one text": (lambda n: NAMES * (2000 * n), tokenizer.encode),
        "Encoder.encode": (lambda n: [SENTENCE] * (2000 * n), encoder.encode),
        "Index.search": (lambda n: [SENTENCE] * (2000 * n), index.search),
    }


CALLS = calls()


def test_ctrl_c_ends_a_call_soon():
    """Five calls of at least 20 times the time until the signal; none of them may come to its end."""
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for name, (work, call) in CALLS.items():
            n, spent = 1, 0.0
            while spent < 0.05:  # how much this machine does in that time
                n *= 2
                some = work(n)
                begin = time.monotonic()
                call(some)
                spent = time.monotonic() - begin
            much = work(40 * n)
            begin = time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, spent)
            with pytest.raises(KeyboardInterrupt):
                call(much)
            assert time.monotonic() - begin < 20 * spent, name
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "Index.search"])
def test_a_progress_function_sees_and_stops_a_call(name):
    work, call = CALLS[name]
    seen, n = [], 1
    while not seen:  # a call of less than 20 ms does not use it
        n *= 2
        call(work(n), progress=lambda *step: seen.append(step))
    assert all(what in ("near", "tokens") and 0 <= done <= total for what, done, total in seen)
    with pytest.raises(embla.StoppedError, match="stopped by the caller"):
        call(work(4 * n), progress=lambda *step: False)

    def fail(*_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        call(work(4 * n), progress=fail)
    with pytest.raises(TypeError, match="progress must be a function, or False for no bar, not 3"):
        call(work(1), progress=3)


LONG = {
    "near": "import numpy as np\n"
            "t = embla.Table.over(np.ones((20000, 64), np.float32))\n"
            "n = 500\nwhile not shown: n *= 2; t.near(np.ones((n, 64), np.float32){})",
    "encode": "e = embla.Encoder(DEMO + '/words.vec')\n"
              "n = 9999\nwhile not shown: n *= 2; e.encode(['the cat and the dog'] * n{})",
    "tokens": "e = embla.Tokenizer(DEMO + '/names')\n"
              "n = 9999\nwhile not shown: n *= 2; e.encode(['emmaoliviaava'] * n{})",
}
# Remembers that something was drawn, so that each call grows until it was long enough.
PATCH = ("shown = []\ndraw = _bar._Terminal.draw\n"
         "_bar._Terminal.draw = lambda self, text: (shown.append(text), draw(self, text))\n")


@pytest.mark.parametrize("name", LONG)
def test_a_terminal_shows_a_bar(name, tmp_path):
    seen, out = run(tmp_path, PATCH + LONG[name].format(""))
    assert "%" in seen and seen.endswith("\r\x1b[K") and out == ""


@pytest.mark.parametrize("name", LONG)
def test_without_progress_a_terminal_stays_empty(name, tmp_path):
    call = LONG[name].format(", progress=False").replace("while not shown", "for _ in range(3)")
    assert run(tmp_path, PATCH + call) == ("", "")
