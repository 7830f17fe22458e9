"""Run the command `tracer` in forked processes.

They are forked from a process that has imported everything, so that one takes a fraction of a second to start. The
tests of signals, kills and pairs of processes use them too.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules, walk_packages
from typing import IO, NamedTuple, NoReturn

import torch
from jaxtyping import config

import tracer.data
import tracer.evaluation
import tracer.merging
import tracer.report
from tracer.cli import commands
from tracer.cli.app import main
from tracer.evaluation import measured
from tracer.models.open_clip_compat import open_clip

CRASH = 70  # exit code of an uncaught exception
TIMEOUT = 600.0  # seconds; no command here takes that long unless it hangs

Injection = Callable[[], object]  # called in the child before the command starts


class Exit(NamedTuple):
    """How a command ended: its exit code, or minus the signal that ended it, and its output."""

    code: int
    output: str
    seconds: float

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def clear_error(self) -> bool:
        """Whether the command failed with an error message, a proper exit code and no traceback."""
        return 0 < self.code < CRASH and "error: " in self.output and "Traceback" not in self.output

    @property
    def tail(self) -> str:
        """The exit code and the end of the output, for reports."""
        return f"exit {self.code}: {self.output.strip()[-400:]}"


class ForkedProcess:
    """A child process that does some work, before which `inject` is called, and exits with the code it returns."""

    def __init__(self, work: Callable[[], int], inject: Injection | None = None) -> None:
        self._output, self._started = tempfile.TemporaryFile(), time.monotonic()  # noqa: SIM115
        self.child = os.fork()
        if self.child == 0:
            _finish_child(work, inject, self._output)

    def wait_until_stopped(self) -> bool:
        """Wait until the child has stopped itself (SIGSTOP); False if it has ended instead."""
        return os.WIFSTOPPED(os.waitpid(self.child, os.WUNTRACED)[1])

    def kill(self) -> None:
        """Send SIGKILL."""
        os.kill(self.child, signal.SIGKILL)

    def wait(self, kill_after: float | None = None) -> Exit:
        """Wait for the end; kill the process after `kill_after` seconds or the timeout."""
        limit = TIMEOUT if kill_after is None else kill_after
        while not (status := os.waitpid(self.child, os.WNOHANG))[0]:
            if time.monotonic() - self._started >= limit:
                self.kill()
                status = os.waitpid(self.child, 0)
                break
            time.sleep(0.002)
        with self._output as file:
            file.seek(0)
            text = file.read().decode(errors="replace")
        return Exit(os.waitstatus_to_exitcode(status[1]), text, time.monotonic() - self._started)


class CommandProcess(ForkedProcess):
    """`tracer ARGUMENTS` in a child process, in which `inject` is called first."""

    def __init__(self, arguments: Sequence[str], inject: Injection | None = None) -> None:
        super().__init__(lambda: main(list(arguments)), inject)


def run_command(
    arguments: Sequence[str], *, inject: Injection | None = None, kill_after: float | None = None
) -> Exit:
    """Run `tracer ARGUMENTS` in a child process, with a fault injected or killed after so many seconds."""
    return CommandProcess(arguments, inject).wait(kill_after)


def free_port() -> int:
    """A port of this machine on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def join_pair(rank: int, port: int) -> None:
    """In a forked process: set what `torchrun --nproc-per-node=2` sets for its processes."""
    os.environ |= {
        **{name: str(rank) for name in ("RANK", "LOCAL_RANK")},
        **dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), "2"),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def preload() -> None:
    """Import what every command needs; 24 ImageNet class names and a cached tokeniser keep the commands short."""
    torch.set_num_threads(1)
    names = measured.known_names()[:24]
    measured.known_names = lambda: names
    open_clip.get_tokenizer = cache(open_clip.get_tokenizer)
    for command in iter_modules(commands.__path__):
        import_module(f"{commands.__name__}.{command.name}")
    for package in (
        tracer.data,
        tracer.evaluation,
        tracer.merging,
        tracer.report,
    ):  # commands import them late
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)


def _finish_child(work: Callable[[], int], inject: Injection | None, output: IO[bytes]) -> NoReturn:  # pyrefly: ignore[bad-return]
    """In a forked process: inject a fault, do the work with its output written to a file, and exit with its code."""
    code = CRASH
    try:
        _as_if_new(output)
        if inject is not None:
            inject()
        code = work()
    except SystemExit as stop:  # a command line that cannot be parsed
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:  # noqa: BLE001  (the child must end here, whatever was raised)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _as_if_new(output: IO[bytes]) -> None:
    """Undo what a test runner has changed in the process that was forked: streams, signals, warnings, type checks.

    Its threads are not here, so that nothing may wait for them.
    """
    torch.set_num_threads(1)
    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    sys.stdout, sys.stderr = (open(stream, "w", buffering=1, closefd=False) for stream in (1, 2))  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under nohup
    warnings.resetwarnings()
    for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", category)
    config.update("jaxtyping_disable", True)
