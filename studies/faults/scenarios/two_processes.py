"""SIGKILL of both or one of two training processes, resumed with two; the weights compared bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from studies.faults.injection import kill_self, on_call
from studies.faults.process import CommandProcess, Exit, free_port, join_pair
from studies.faults.verdict import Verdict, lost, survived
from studies.faults.workspace import Workspace, difference

DURABLE = ("fsync", "replace", "mkdir")


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """The first process is killed in the middle of writing, the second at the same moment or left to notice."""
    whole = workspace.new_path("pair-whole")
    if failed := [result for result in _pair(workspace, whole) if result.code]:
        yield lost("two processes", failed[0].tail)
        return
    for number in range(workspace.count(1, 16)):
        call, alone = workspace.rng.randint(2, 24), number % 4 == 0
        what = f"{'one' if alone else 'both'} of two processes at durable call {call}"
        run = workspace.new_path("pair")
        first, second = _pair(workspace, run, call, alone=alone)
        if first.code and (not first.killed or "Traceback" in second.output):
            yield lost(what, f"{first.tail} / {second.tail}")
            continue
        failed = [result for result in _pair(workspace, run) if result.code]
        wrong = failed[0].tail if failed else difference(run, whole)
        yield lost(what, wrong) if wrong else survived(what)


def _pair(workspace: Workspace, run: Path, call: int | None = None, *, alone: bool = False) -> list[Exit]:
    """Two processes on one run, as torchrun starts them; the first is killed at a durable call."""
    port = free_port()
    started = (run / "experiment.json").exists()
    resume = ["resume", str(run), "--save-every", "2", "--workers", "0", "--device", "cpu"]
    arguments = resume if started else workspace.train_arguments(run)

    def environment(rank: int) -> None:
        join_pair(rank, port)
        if call is not None and rank == 0:
            on_call(call, kill_self, *DURABLE)

    processes = [CommandProcess(arguments, lambda rank=rank: environment(rank)) for rank in range(2)]
    first = processes[0].wait()
    if first.killed and not alone:
        processes[1].kill()
    return [first, processes[1].wait()]
