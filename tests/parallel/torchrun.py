"""`torchrun --nproc-per-node=2 -m tracer`, as a user starts it, and in forks, which spares three starts of Python."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

import torch
from starting import environment
from torch.distributed import run

from studies.faults.process import ForkedProcess
from tracer.cli.app import main

Launch = Callable[[Sequence[str], Sequence[str]], ForkedProcess]  # arguments of tracer, options of torchrun
TWO = ["--standalone", "--nproc-per-node=2"]


def started(arguments: Sequence[str], options: Sequence[str] = ()) -> ForkedProcess:
    """Each is a Python of its own, as on a user's machine; the launcher has a process group of its own."""
    command = [sys.executable, "-m", "torch.distributed.run", *TWO, *options, "-m", "tracer", *arguments]

    def become() -> NoReturn:
        os.execve(sys.executable, command, environment())

    return ForkedProcess(become, lambda: os.setpgid(0, 0))


def forked(arguments: Sequence[str], options: Sequence[str] = ()) -> ForkedProcess:
    """The same agent, which forks its processes instead of starting them."""
    return ForkedProcess(partial(_launch, [*arguments], [*options]), lambda: os.setpgid(0, 0))


def ranks(launcher: int) -> dict[int, int]:
    """The processes that a launcher has started, by rank, which is in the name of each."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return {rank: int(child) for child in children if (rank := _rank(Path("/proc", child))) is not None}


def running(process: int) -> bool:
    """Whether it goes on; one that has ended and that nobody has asked about is no more than a name."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def _rank(process: Path) -> int | None:
    for word in process.joinpath("environ").read_bytes().split(b"\0"):
        if word.startswith(b"RANK="):
            return int(word[5:])
    name = process.joinpath("comm").read_text().strip()
    return int(name[5:]) if name.startswith("rank ") else None


def _launch(arguments: list[str], options: list[str]) -> int:
    configured = run.config_from_args

    def forking(asked: Any) -> tuple[Any, Callable[[list[str]], None], list[list[str]]]:
        config, _, _ = configured(asked)
        config.start_method = "fork"
        return config, _process, [arguments]

    with patch.object(run, "config_from_args", forking):
        run.main([*TWO, *options, "-m", "tracer"])
    return 0


def _process(arguments: list[str]) -> None:
    os.setsid()  # as torchrun does
    Path("/proc/self/comm").write_text(f"rank {os.environ['RANK']}")
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_DFL)  # those of the launcher
    signal.signal(signal.SIGINT, signal.default_int_handler)
    torch.set_num_threads(1)
    sys.exit(main(arguments))
