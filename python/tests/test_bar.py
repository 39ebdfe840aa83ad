# SPDX-License-Identifier: Apache-2.0
"""The progress bar: where it appears, where it does not, and that it goes away."""

import os
import pathlib
import pty
import subprocess
import sys
import termios
import types

import pytest

import embla
from embla import _bar

DEMO = pathlib.Path(embla.__file__).parent / "demo"

CALLS = {
    "words": 'embla.words(DEMO + "/village.txt", dim=4, epochs=1, clean="words", seed=1{})',
    "train": 'embla.train(DEMO + "/names.txt", "run", preset="microgpt", steps=3{})',
    "save": 'embla.open(DEMO + "/words.vec").save("w.gguf", overwrite=True{})',
    "layout": 'embla.open(DEMO + "/words.vec").layout(steps=20{})',
    "map": 'embla.open(DEMO + "/words.vec").map("w.svg", overwrite=True{})',
    "eval": 'embla.open(DEMO + "/words.vec").eval(DEMO + "/analogies.txt"{})',
    "index": 'embla.Index(embla.Encoder(DEMO + "/words.vec"), DEMO + "/village.txt"{})',
    "fit": 'embla.Encoder(DEMO + "/words.vec").fit(DEMO + "/village.txt", "w.fit"{})',
}


def run(folder, call, after=0.0, pipe=False, columns=60):
    """What a program that makes this call writes to a terminal, and to its standard output."""
    program = (f"import embla, os\nfrom embla import _bar\n_bar.AFTER, _bar.EVERY = {after}, 0\n"
               f"DEMO = {str(DEMO)!r}\n{call}\n")
    environment = dict(os.environ, TERM="xterm", PYTHONPATH=os.pathsep.join(sys.path))
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    with subprocess.Popen([sys.executable, "-c", program], cwd=folder, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE if pipe else theirs) as child:
        os.close(theirs)
        seen = b""
        while not pipe:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
        out, err = child.communicate()
    os.close(ours)
    assert child.returncode == 0, seen + (err or b"")
    return (err if pipe else seen).decode(), out.decode()


@pytest.mark.parametrize("name", CALLS)
def test_a_terminal_shows_a_bar_that_goes_away(name, tmp_path):
    seen, out = run(tmp_path, CALLS[name].format(""))
    assert seen.endswith("\r\x1b[K") and out == ""
    drawn = [line.removesuffix("\x1b[K") for line in seen.split("\r")]
    assert any("%" in line or ":" in line for line in drawn)
    assert max(len(line) for line in drawn) < 60


@pytest.mark.parametrize("name", CALLS)
def test_progress_false_shows_nothing(name, tmp_path):
    assert run(tmp_path, CALLS[name].format(", progress=False")) == ("", "")


def test_a_pipe_and_a_quick_call_show_nothing(tmp_path):
    assert run(tmp_path, CALLS["words"].format(""), pipe=True) == ("", "")
    assert run(tmp_path, CALLS["save"].format(""), after=1e9) == ("", "")


def test_a_function_takes_the_place_of_the_bar(tmp_path):
    call = CALLS["index"].format(", progress=lambda what, done, total: print(what, done <= total)")
    seen, out = run(tmp_path, call)
    assert seen == "" and "True" in out and "False" not in out
    with pytest.raises(TypeError, match="progress must be a function, or False"):
        embla.open(DEMO / "words.vec").layout(progress="yes")


def test_an_exception_removes_the_bar(tmp_path):
    seen, _ = run(tmp_path, "try:\n    with _bar.shown(None) as step:\n        step('lines', 1, 4)\n"
                            "        raise KeyError\nexcept KeyError: print('raised')")
    assert "lines" in seen and seen.endswith("\r\x1b[K")


def test_a_notebook_shows_a_bar_in_its_cell(monkeypatch):
    drawn = []
    handle = types.SimpleNamespace(update=lambda data, raw: drawn.append(data["text/plain"]))

    def display(data, raw, display_id):
        drawn.append(data["text/plain"])
        return handle

    shell = types.SimpleNamespace(kernel=object())
    ipython = types.SimpleNamespace(get_ipython=lambda: shell, display=types.SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setattr(_bar, "AFTER", 0)
    monkeypatch.setattr(_bar, "EVERY", 0)
    with _bar.shown(None) as step:
        step("rows", 1, 4)
        step("rows", 2, 4)
    assert len(drawn) == 3 and "25 %" in drawn[0] and "50 %" in drawn[1] and drawn[2] == ""


def test_a_line_fits_and_says_what_is_left():
    text = _bar.line("training", 1, 4, 30.0, 79, "loss 2.5")
    assert text.startswith("training  █") and text.endswith("25 %  0:30, 1:30 left, loss 2.5")
    assert _bar.line("map", 0, 0, 3700.0, 79) == "map  1:01:40"
    for width in (1, 10, 20, 40, 79, 200):
        assert len(_bar.line("training", 7, 9, 1.0, width, "loss 1")) <= width
