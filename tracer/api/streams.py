"""Standard output and error that never end a command: what cannot be written is left out, and that is said."""

from __future__ import annotations

import codecs
import errno
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

PATIENCE = 1.0  # seconds that training waits for a reader that does not read
PLAIN = str.maketrans(
    {
        **dict.fromkeys("−–—‑", "-"),
        **dict.fromkeys("“”", '"'),
        **dict.fromkeys("‘’", "'"),
        "→": "->",
        "←": "<-",
        "±": "+-",
        "×": "x",
        "·": "*",
        "…": "...",
        "≥": ">=",
        "≤": "<=",
        "‖": "||",
    }
)
LEFT = (errno.EPIPE, errno.ECONNRESET)  # the reader had enough, as `head` has


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """The characters that an encoding lacks, in ASCII: an arrow as ->, others as \\u2192."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(PLAIN)
    return text.encode("ascii", "backslashreplace").decode("ascii"), error.end


codecs.register_error("tracer.plain", _plain)


class Stream(io.TextIOBase):
    """Writes to the file of another stream at once, and never raises because of it.

    What the encoding lacks is written in ASCII. What a full disk or a terminal that is gone does not take is left out,
    and said once on `other`; that a reader has had enough is said only while a model trains.
    """

    training = False  # of the process: whether a model trains, which waits for no reader

    def __init__(self, inner: io.TextIOWrapper, other: TextIO | None = None) -> None:
        self.inner, self.other = inner, other
        self.lost: OSError | None = None  # why something could not be written
        self.skipped = 0  # texts that nobody read in time
        self._encoder = codecs.getincrementalencoder(inner.encoding)("tracer.plain")

    @property
    def encoding(self) -> str:  # pyrefly: ignore[bad-override]
        """That of the file, by which rich chooses the lines of its tables."""
        return self.inner.encoding

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)  # `buffer`, and what else a library looks for

    def fileno(self) -> int:
        return self.inner.fileno()

    def isatty(self) -> bool:
        return self.inner.isatty()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        try:
            self.inner.flush()  # what somebody else has written to it comes first
            self._write(text)
        except OSError as error:
            self._give_up(error)
        except ValueError:  # it was closed
            pass
        return len(text)

    def _write(self, text: str) -> None:
        if self.skipped:
            if not self._ready(0.0 if self.training else None):
                self.skipped += 1
                return
            skipped, self.skipped = self.skipped, 0
            self._write(f"\n… {skipped} messages are left out here, which nobody read in time\n")
        content = memoryview(self._encoder.encode(text))
        while content:
            if not self._ready(PATIENCE if self.training else None):
                self.skipped += 1
                return
            with suppress(BlockingIOError):
                content = content[os.write(self.fileno(), content[: select.PIPE_BUF]) :]

    def _ready(self, seconds: float | None) -> bool:
        """Wait until a reader has room for more; False if that takes longer than this, where it is not None."""
        poll = select.poll()
        poll.register(self.fileno(), select.POLLOUT)
        return bool(poll.poll(None if seconds is None else 1000 * seconds))

    def _give_up(self, error: OSError) -> None:
        first, self.lost = self.lost is None, error
        left = error.errno in LEFT
        if first and self.other is not None and (self.training or not left):
            reason = "nobody reads what is printed" if left else f"printing fails: {error.strerror}"
            self.other.write(f"warning: {reason}; the command goes on without\n")


def steady(stream: Any, other: TextIO | None = None) -> Any:
    """A `Stream` in the place of this one; one that is no file of the system, as in a notebook, stays as it is."""
    if isinstance(stream, Stream) or not isinstance(stream, io.TextIOWrapper):
        return stream
    try:
        stream.fileno()
    except (OSError, ValueError):
        return stream
    return Stream(stream, other)


@contextmanager
def steady_streams() -> Iterator[None]:
    """A context in which nothing that is printed, by whatever library, can end the process.

    A standard stream that is closed leads nowhere: the next file that is opened would have its number, and be written
    to by all that prints a warning.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
    before = sys.stdout, sys.stderr
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        sys.stdout, sys.stderr = (steady(nowhere if each is None else each) for each in before)
        for stream, other in ((sys.stdout, sys.stderr), (sys.stderr, sys.stdout)):
            if isinstance(stream, Stream):
                stream.other = other
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before


@contextmanager
def training() -> Iterator[None]:
    """A context in which no output is waited for: a viewer that stands still would hold up hours of work."""
    before, Stream.training = Stream.training, True
    try:
        yield
    finally:
        Stream.training = before
