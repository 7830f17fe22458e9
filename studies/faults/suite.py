"""Run the scenarios and count their verdicts."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from pkgutil import iter_modules
from random import Random
from types import ModuleType

from studies.faults import scenarios as package
from studies.faults.verdict import Outcome, Verdict, lost
from studies.faults.workspace import Workspace


@dataclass
class Tally:
    """The verdicts of one scenario, counted."""

    name: str
    title: str
    counts: Counter[Outcome] = field(default_factory=Counter)
    lost: list[Verdict] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def tried(self) -> int:
        return self.counts.total()

    def add(self, verdict: Verdict) -> None:
        self.counts[verdict.outcome] += 1
        if verdict.outcome is Outcome.LOST:
            self.lost.append(verdict)


LONG = ("killed", "methods_killed", "options_killed")

Report = Callable[[Tally, Verdict], None]  # called after each input


@cache
def scenarios() -> dict[str, ModuleType]:
    """Every module in `studies/faults/scenarios`, by name."""
    names = sorted(module.name for module in iter_modules(package.__path__))
    return {name: import_module(f"{package.__name__}.{name}") for name in names}


def suite(
    folder: Path, names: Sequence[str], seed: int, *, quick: bool, report: Report, jobs: int = 1
) -> Iterator[Tally]:
    """Run these scenarios, `jobs` at a time; yields each when it has ended, the longest start first.

    The inputs of a scenario depend on the seed, not on the other scenarios.
    """
    if jobs == 1:
        workspace = Workspace(folder, Random(seed), quick)
        yield from (tallied(name, workspace, seed, report) for name in names)
        return
    longest = sorted(names, key=lambda name: (name not in LONG, name))
    with ProcessPoolExecutor(jobs, get_context("fork")) as pool:
        futures = [pool.submit(_in_process, name, folder / name, seed, quick, report) for name in longest]
        yield from (each.result() for each in as_completed(futures))


def tallied(name: str, workspace: Workspace, seed: int, report: Report) -> Tally:
    """Run one scenario."""
    workspace.rng.seed(f"{seed} {name}")
    tally = Tally(name, title(scenarios()[name]))
    started = time.monotonic()
    for verdict in _verdicts(scenarios()[name], workspace):
        tally.add(verdict)
        tally.seconds = time.monotonic() - started
        report(tally, verdict)
    return tally


def _in_process(name: str, folder: Path, seed: int, quick: bool, report: Report) -> Tally:
    return tallied(name, Workspace(folder, Random(seed), quick), seed, report)


def title(scenario: ModuleType) -> str:
    """The name of a scenario in the table: the first line of its docstring."""
    return (scenario.__doc__ or scenario.__name__).splitlines()[0].rstrip(".")


def _verdicts(scenario: ModuleType, workspace: Workspace) -> Iterator[Verdict]:
    """The verdicts of a scenario; an exception in the scenario itself counts as one lost input."""
    try:
        yield from scenario.trials(workspace)
    except Exception:  # noqa: BLE001  (the other scenarios still run, and the suite fails at its end)
        yield lost("the scenario itself", traceback.format_exc())
