# SPDX-License-Identifier: Apache-2.0
"""The exceptions of embla: one class for each status of the library.

Every class is an :class:`Error`. Each is also the built-in exception that code
without embla in mind would catch: a missing word is a ``KeyError``, an id
outside the table an ``IndexError``. The message is the library's sentence.
"""


class Error(Exception):
    """The base of all exceptions of embla."""

    def __str__(self) -> str:  # KeyError would print the repr of its message
        return " ".join(str(a) for a in self.args)


class ArgumentError(Error, ValueError):
    """The call is wrong, whatever the data."""


class OutOfMemoryError(Error, MemoryError):
    """There is not enough memory."""


class FileError(Error, OSError):
    """The system reported an error, or a file changed while it was open."""


class MissingFileError(FileError, FileNotFoundError):
    """The file does not exist."""


class FormatError(Error, ValueError):
    """The file is damaged or breaks the rules of its format."""


class UnsupportedError(Error, NotImplementedError):
    """The file or the request is valid, but embla does not read or do it."""


class NotFoundError(Error, KeyError):
    """There is no such word, tensor or name."""


class RangeError(Error, IndexError):
    """A token, a row or a position is outside the table."""


class ShapeError(Error, ValueError):
    """Two sizes do not fit together."""


class StoppedError(Error):
    """A progress function returned False."""


class BusyError(Error):
    """Another call, view or process uses it now; try again later."""
