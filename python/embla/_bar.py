# SPDX-License-Identifier: Apache-2.0
"""The progress bar of long calls.

It appears after a second, where a person can see it: on standard error if that is a terminal,
or in the cell of a notebook. It is removed when the call ends. A call that is quicker, or
whose standard error is a file or a pipe, shows nothing.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import Any, Iterator, Union

from ._types import Progress

AFTER = 1.0  # seconds until a bar appears
EVERY = 0.1  # seconds between two drawings

# A function, False for no bar, None or True for a bar.
Shown = Union[Progress, bool, None]


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def line(what: str, done: int, total: int, seconds: float, width: int, note: str = "") -> str:
    """A bar of at most width characters."""
    if total <= 0 or done <= 0:
        return f"{what}  {_clock(seconds)}"[:width]
    share = min(1.0, done / total)
    left = _clock(seconds / share - seconds)
    text = f"{what}  {100 * share:3.0f} %  {_clock(seconds)}, {left} left{note and ', ' + note}"
    room = min(40, width - len(text) - 2)
    if room < 8:
        return text[:width]
    full = int(room * share)
    return f"{what}  {'█' * full}{'░' * (room - full)}{text[len(what):]}"


class _Terminal:
    """One line of a terminal, which is written again and again."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.drawn = False

    def draw(self, text: str) -> None:
        self.stream.write(f"\r{text}\x1b[K")
        self.stream.flush()
        self.drawn = True

    def width(self) -> int:
        try:
            return os.get_terminal_size(self.stream.fileno()).columns - 1
        except (OSError, ValueError):
            return 79

    def close(self) -> None:
        if self.drawn:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


class _Cell:
    """A line in the output of a notebook's cell."""

    def __init__(self, ipython: Any) -> None:
        self.ipython = ipython
        self.handle: Any = None

    def draw(self, text: str) -> None:
        data = {"text/plain": text}
        if self.handle is None:
            self.handle = self.ipython.display.display(data, raw=True, display_id=True)
        else:
            self.handle.update(data, raw=True)

    def width(self) -> int:
        return 79

    def close(self) -> None:
        if self.handle is not None:
            self.handle.update({"text/plain": ""}, raw=True)


def _place() -> _Terminal | _Cell | None:
    """Where a person can see a bar; None if nowhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if ipython is not None and getattr(shell, "kernel", None) is not None:
        return _Cell(ipython)
    try:
        if sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            return _Terminal(sys.stderr)
    except (AttributeError, ValueError):
        pass  # standard error is closed, or something else
    return None


class Bar:
    """A progress function that draws."""

    def __init__(self, place: _Terminal | _Cell) -> None:
        self.place: _Terminal | _Cell | None = place
        self.begin = time.monotonic()
        self.next = self.begin + AFTER
        self.what = ""
        self.since = self.begin

    def __call__(self, what: str, done: int, total: int, note: str = "") -> None:
        now = time.monotonic()
        if what != self.what:  # each part of a call has its own time
            self.what, self.since = what, now
        if now < self.next or self.place is None:
            return
        self.next = now + EVERY
        try:
            self.place.draw(line(what, done, total, now - self.since, self.place.width(), note))
        except (OSError, ValueError):
            self.place = None  # the terminal is gone: the call goes on

    def close(self) -> None:
        """Removes the bar."""
        with contextlib.suppress(OSError, ValueError):
            if self.place is not None:
                self.place.close()


def begin() -> Bar | None:
    """A bar where a person can see it; None if nowhere."""
    place = _place()
    return Bar(place) if place is not None else None


@contextlib.contextmanager
def shown(progress: Any) -> Iterator[Any]:
    """What a call reports to: the caller's function, or a bar, or None.

    A bar is also an instance of :class:`Bar`, so that a call can tell it from a function.
    """
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise TypeError(f"progress must be a function, or False for no bar, not {progress!r}")
    bar = begin() if progress is None or progress is True else None
    if bar is None:
        yield progress if callable(progress) else None
        return
    try:
        yield bar
    finally:
        bar.close()
