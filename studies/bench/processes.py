"""Two processes of one thread each against one, on the same global batch: `python studies/bench/processes.py`.

Three ways to take a step, in turns, so that whatever else the machine does falls on all of them:

- one: one process, the whole batch;
- two: two processes over gloo, half of the batch each (DDP, or FSDP2 with --shard);
- apart: two processes at the same time, half of the batch each, that never speak to each other.

The throughput of two processes is t(one) / t(two) times that of one. What they spend on communication, waiting for
each other included, is 1 − t(apart) / t(two); that their loss is over the whole batch and not over half of it is in
there too, which at these batches is nothing. By the processor's clock waiting costs nothing, so that both figures
are what a machine with a core for each process would at best show.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from tracer.parallel import World, launch
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.training.setup import batches, begin, opened
from tracer.training.step import step

CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}
WARM = 2  # steps that are not counted: DDP settles its buckets in them


def seconds(model: str, batch: int, steps: int, world: World, clock: Callable[[], float]) -> float:
    """The median step of TRACER on embedded digits, data made beforehand."""
    made = plan(
        Experiment(
            data="digits", model=model, pretrained="none", batch=batch, steps=steps + WARM, precision="fp32"
        )
    )
    student = opened(made)
    pretrained = {name: tensor.clone() for name, tensor in student.state_dict().items()}
    (state,) = begin(made, made.method.stages[0], made.steps, student, pretrained, world)
    ready = batches(made, state, 0)
    times = []
    for batch_ in [ready[index] for index in range(steps + WARM)]:
        began = clock()
        step(state, batch_)
        times.append(clock() - began)
    return statistics.median(times[WARM:])


def measured(way: str, asked: argparse.Namespace) -> float:
    """One turn of a way, in processes of its own; of two processes the slower one counts."""
    ranks = 1 if way == "one" else 2
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / str(rank) for rank in range(ranks)]
        children = [
            _forked(lambda rank=rank, file=file: file.write_text(str(_rank(way, rank, port, asked))))
            for rank, file in enumerate(files)
        ]
        if any(os.waitpid(child, 0)[1] for child in children):
            sys.exit(f"{way} failed")
        return max(float(file.read_text()) for file in files)


def _forked(act: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return child


def _rank(way: str, rank: int, port: int, asked: argparse.Namespace) -> float:
    torch.set_num_threads(1)
    if way != "two":
        share = asked.batch if way == "one" else asked.batch // 2
        return seconds(asked.model, share, asked.steps, World("cpu", "fp32"), CLOCKS[asked.clock])
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    world = launch("cpu", "fp32", shard=asked.shard)
    found = seconds(asked.model, asked.batch, asked.steps, world, CLOCKS[asked.clock])
    world.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="tiny-28")
    parser.add_argument("--batch", type=int, default=128, help="of all processes together")
    parser.add_argument("--steps", type=int, default=20, help="a turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="processor: on a machine with other work"
    )
    parser.add_argument("--shard", action="store_true", help="FSDP2 instead of DDP")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    turns = [{way: measured(way, asked) for way in ("one", "two", "apart")} for _ in range(asked.rounds)]
    ratios = sorted(turn["one"] / turn["two"] for turn in turns)
    shares = sorted(1 - turn["apart"] / turn["two"] for turn in turns)
    for name, values in (("throughput of two over one", ratios), ("share of communication", shares)):
        print(f"{name}: {statistics.median(values):.2f} (from {values[0]:.2f} to {values[-1]:.2f})")
    told = {way: round(statistics.median(turn[way] for turn in turns), 4) for way in turns[0]}
    print(json.dumps({**vars(asked), "seconds a step": told, "load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
