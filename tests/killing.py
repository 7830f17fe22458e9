"""A driver for the survival tests: runs `tracer` in forked children that die by SIGKILL, and goes on until done.

`python killing.py FOLDER METHODS ARGUMENTS…` trains each method, spelt with options of its own, twice: into
FOLDER/METHOD-peaceful and into FOLDER/METHOD-troubled. The first children of the latter are killed: in turn at a random
moment, and inside the n-th
call that makes a write durable (so also between two files of a checkpoint). It prints how many were killed, by method.
Importing once and forking makes each life cost a fraction of a second; the deaths are real.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

from tracer.cli.app import main
from tracer.evaluation import summary

KILLS = 6

torch.set_num_threads(1)
summary.KNOWN_NAMES = summary.KNOWN_NAMES[:5]


def life(arguments: list[str], durable_writes: int | None) -> None:
    """Be the child: perhaps die inside a write, else run the command and exit with its code."""
    if durable_writes is not None:
        count, real = 0, os.fsync

        def fsync(descriptor: int) -> None:
            nonlocal count
            count += 1
            if count == durable_writes:
                os.kill(os.getpid(), signal.SIGKILL)
            real(descriptor)

        os.fsync = fsync
    os._exit(main(arguments))


def drive(folder: Path, kills: int, rng: random.Random, arguments: list[str]) -> int:
    """Lives and deaths until the run has ended; returns how many children were really killed."""
    killed = 0
    while True:
        begun = (folder / "experiment.json").exists()
        command = ["resume", str(folder), "--save-every", "2"] if begun else ["train", *arguments]
        in_write = rng.randint(1, 25) if killed < kills and killed % 2 else None
        child = os.fork()
        if child == 0:
            life(command, in_write)
        if killed < kills and in_write is None:
            time.sleep(rng.uniform(0.1, 1.0))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            killed += 1
        elif os.WEXITSTATUS(status):
            sys.exit(f"{command} failed with {os.WEXITSTATUS(status)}")
        elif (folder / "result.json").exists():
            return killed


if __name__ == "__main__":
    place, methods, *rest = sys.argv[1:]
    killed = {}
    for method in methods.split(";"):
        rng = random.Random(7)
        for name, kills in (("peaceful", 0), ("troubled", KILLS)):
            folder = Path(place) / f"{method}-{name}"
            arguments = [*method.split(), *rest, "--save-every", "2", "--out", str(folder)]
            killed[method] = drive(folder, kills, rng, arguments)
    print(json.dumps(killed))
