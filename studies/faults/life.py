"""Lives of the command `tracer`: forked from a process that has imported everything, so that a death costs little."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import IO, NamedTuple, NoReturn

import torch

from tracer.cli import commands
from tracer.cli.app import main
from tracer.models.open_clip_compat import open_clip

CRASH = 70  # an exception that nobody caught
PATIENCE = 180.0  # seconds; nothing here takes longer unless it hangs

Wound = Callable[[], object]


class End(NamedTuple):
    """How a life ended: its exit code, or minus the signal that ended it, and all that it said."""

    code: int
    said: str
    seconds: float

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def clear(self) -> bool:
        """Whether it failed as a command should: a sentence, an exit code, no traceback."""
        return 0 < self.code < CRASH and "error: " in self.said and "Traceback" not in self.said

    @property
    def last_words(self) -> str:
        return f"exit {self.code}: {self.said.strip()[-400:]}"


class Life:
    """`tracer ARGUMENTS` in a child that is perhaps wounded before it begins."""

    def __init__(self, arguments: Sequence[str], wound: Wound | None = None) -> None:
        self._heard, self._began = tempfile.TemporaryFile(), time.monotonic()  # noqa: SIM115
        self.child = os.fork()
        if self.child == 0:
            _be(arguments, wound, self._heard)

    def stands_still(self) -> bool:
        """Wait until the child has stopped itself; False if it has ended instead."""
        return os.WIFSTOPPED(os.waitpid(self.child, os.WUNTRACED)[1])

    def kill(self) -> None:
        """At once, from outside."""
        os.kill(self.child, signal.SIGKILL)

    def end(self, kill_after: float | None = None) -> End:
        """Wait for the end, which comes after `kill_after` seconds at the latest."""
        limit = PATIENCE if kill_after is None else kill_after
        while not (waited := os.waitpid(self.child, os.WNOHANG))[0]:
            if time.monotonic() - self._began >= limit:
                self.kill()
                waited = os.waitpid(self.child, 0)
                break
            time.sleep(0.002)
        with self._heard as heard:
            heard.seek(0)
            said = heard.read().decode(errors="replace")
        return End(os.waitstatus_to_exitcode(waited[1]), said, time.monotonic() - self._began)


def live(arguments: Sequence[str], *, wound: Wound | None = None, kill_after: float | None = None) -> End:
    """Run `tracer ARGUMENTS` in a child, wounded before it begins or killed after so many seconds."""
    return Life(arguments, wound).end(kill_after)


def prepare() -> None:
    """Import once what every life needs; two dozen names of ImageNet and one tokeniser make lives short."""
    torch.set_num_threads(1)
    open_clip.IMAGENET_CLASSNAMES = open_clip.IMAGENET_CLASSNAMES[:24]
    open_clip.get_tokenizer = cache(open_clip.get_tokenizer)
    for command in iter_modules(commands.__path__):
        import_module(f"{commands.__name__}.{command.name}")
    for late in ("evaluation.summary", "report", "data.sources", "merging.ways"):
        import_module(f"tracer.{late}")


def _be(arguments: Sequence[str], wound: Wound | None, heard: IO[bytes]) -> NoReturn:
    code = CRASH
    try:
        for stream in (1, 2):
            os.dup2(heard.fileno(), stream)
        if wound is not None:
            wound()
        code = main(list(arguments))
    except SystemExit as stop:  # a command line that cannot be parsed
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:  # noqa: BLE001  (whatever it is, the child must end here)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
