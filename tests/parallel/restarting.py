"""`torchrun … restarting.py DEATHS ARGUMENTS`: the command `tracer`, one process of which is killed at each start.

DEATHS is MOMENT:RANK for the first start, the second, …, joined by commas.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import torch
import torch.distributed as dist

from tracer.api import run as life
from tracer.cli.app import main
from tracer.parallel.replicated import Replicated
from tracer.training import loop
from tracer.training.learner import Learner

# Where a process is killed: before the n-th call of a function.
MOMENTS: dict[str, tuple[Any, str, int]] = {
    "meeting": (dist, "init_process_group", 1),
    "reading": (
        life,
        "plan",
        1,
    ),  # while it holds the lock of the data's scan, before the run's folder is there
    "starting": (loop, "measure_pretrained", 1),
    "first-steps": (Learner, "step", 2),  # before the first checkpoint
    "middle": (Learner, "step", 6),  # behind a checkpoint, if each is of 4 steps
    "scoring": (loop, "score_result", 1),
    "writing": (loop, "write_summary", 1),
    "leaving": (Replicated, "close", 1),  # when result.json is there
}


def die(deaths: str) -> None:
    """Kill this process at the moment that DEATHS names for its start and its rank."""
    start = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    planned = [each.split(":") for each in deaths.split(",") if each]
    if start >= len(planned) or planned[start][1] != os.environ["RANK"]:
        return
    place, name, calls = MOMENTS[planned[start][0]]
    function, left = getattr(place, name), calls

    def dying(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)

    setattr(place, name, dying)


if __name__ == "__main__":
    torch.set_num_threads(1)
    die(sys.argv[1])
    sys.exit(main(sys.argv[2:]))
