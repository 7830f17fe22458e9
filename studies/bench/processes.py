"""Two processes of one thread each against one, on the same global batch: `python -m studies.bench.processes`.

Three ways to take a step, timed alternately, so that other load on the machine affects all of them:

- one: one process, the whole batch;
- two: two processes over gloo, half of the batch each (DDP, or FSDP2 with --shard);
- apart: two processes at the same time, half of the batch each, that do not communicate.

The throughput of two processes is t(one) / t(two) times that of one. The share of communication,
waiting included, is 1 − t(apart) / t(two); it includes the loss over the whole batch instead of half of it, which is
negligible at these batches. The processor clock does not count waiting, so that both figures are then the best that a
machine with a core for each process could show.
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

from tracer.parallel import World, launched
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.training.setup import first_stage
from tracer.training.step import step

CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}
WARM = 2  # steps that are not counted, in which DDP arranges its buckets


def seconds(model: str, batch: int, steps: int, world: World, clock: Callable[[], float]) -> float:
    """The median time of a TRACER step on embedded digits, without loading data."""
    experiment_plan = plan(
        Experiment(
            data="digits", model=model, pretrained="none", batch=batch, steps=steps + WARM, precision="fp32"
        )
    )
    learner = first_stage(experiment_plan, world)
    state, ready = learner.state, learner.batches
    times = []
    for batch_ in [ready[index] for index in range(steps + WARM)]:
        start = clock()
        step(state, batch_)
        times.append(clock() - start)
    return statistics.median(times[WARM:])


def measured(way: str, options: argparse.Namespace) -> float:
    """The time of one way in new processes; of two processes, that of the slower one."""
    ranks = 1 if way == "one" else 2
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / str(rank) for rank in range(ranks)]
        children = [
            _forked(lambda rank=rank, file=file: file.write_text(str(_rank(way, rank, port, options))))
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


def _rank(way: str, rank: int, port: int, options: argparse.Namespace) -> float:
    torch.set_num_threads(1)
    if way != "two":
        share = options.batch if way == "one" else options.batch // 2
        return seconds(options.model, share, options.steps, World("cpu", "fp32"), CLOCKS[options.clock])
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    with launched("cpu", "fp32", shard=options.shard) as world:
        return seconds(options.model, options.batch, options.steps, world, CLOCKS[options.clock])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="tiny-28")
    parser.add_argument("--batch", type=int, default=128, help="of all processes together")
    parser.add_argument("--steps", type=int, default=20, help="steps per measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="processor: on a machine with other work"
    )
    parser.add_argument("--shard", action="store_true", help="FSDP2 instead of DDP")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rounds = [{way: measured(way, options) for way in ("one", "two", "apart")} for _ in range(options.rounds)]
    ratios = sorted(each["one"] / each["two"] for each in rounds)
    shares = sorted(1 - each["apart"] / each["two"] for each in rounds)
    for name, values in (("throughput of two over one", ratios), ("share of communication", shares)):
        print(f"{name}: {statistics.median(values):.2f} (from {values[0]:.2f} to {values[-1]:.2f})")
    medians = {way: round(statistics.median(each[way] for each in rounds), 4) for way in rounds[0]}
    print(json.dumps({**vars(options), "seconds a step": medians, "load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
