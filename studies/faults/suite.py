"""Every kind of fault, one after the other, and how often it was survived."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from pkgutil import iter_modules
from random import Random
from types import ModuleType

from studies.faults import kinds as package
from studies.faults.site import Site
from studies.faults.verdict import Outcome, Verdict, lost


@dataclass
class Tally:
    """The verdicts on one kind of fault, counted."""

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


Tell = Callable[[Tally, Verdict], None]


@cache
def kinds() -> dict[str, ModuleType]:
    """The kinds of fault: every file in `studies/faults/kinds`."""
    names = sorted(module.name for module in iter_modules(package.__path__))
    return {name: import_module(f"{package.__name__}.{name}") for name in names}


def suite(
    folder: Path, names: Sequence[str], seed: int, *, quick: bool, tell: Tell, jobs: int = 1
) -> list[Tally]:
    """Try these kinds, several at a time if asked; a kind's inputs depend on the seed and on no other kind."""
    if jobs == 1:
        site = Site(folder, Random(seed), quick)
        return [tallied(name, site, seed, tell) for name in names]
    with ProcessPoolExecutor(jobs, get_context("fork")) as pool:
        waiting = [pool.submit(_alone, name, folder / name, seed, quick, tell) for name in names]
        return [each.result() for each in waiting]


def tallied(name: str, site: Site, seed: int, tell: Tell) -> Tally:
    """The verdicts on one kind."""
    site.rng.seed(f"{seed} {name}")
    tally = Tally(name, title(kinds()[name]))
    began = time.monotonic()
    for verdict in _verdicts(kinds()[name], site):
        tally.add(verdict)
        tally.seconds = time.monotonic() - began
        tell(tally, verdict)
    return tally


def _alone(name: str, folder: Path, seed: int, quick: bool, tell: Tell) -> Tally:
    return tallied(name, Site(folder, Random(seed), quick), seed, tell)


def title(kind: ModuleType) -> str:
    """A kind's row in the table: the first line of its docstring."""
    return (kind.__doc__ or kind.__name__).splitlines()[0].rstrip(".")


def _verdicts(kind: ModuleType, site: Site) -> Iterator[Verdict]:
    """A kind's verdicts; that the trial itself broke is a verdict too."""
    try:
        yield from kind.trials(site)
    except Exception:  # noqa: BLE001  (the suite goes on, and fails at its end)
        yield lost("the trial itself", traceback.format_exc())
