"""Clocks that jump, back and forth, during a run and before it is resumed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from studies.faults.site import STEPS, Site, difference
from studies.faults.verdict import Verdict, lost, survived
from studies.faults.wounds import behind_rename, die

YEAR = 365 * 86400.0


def trials(site: Site) -> Iterator[Verdict]:
    """No bit depends on what time it is said to be."""
    for _ in range(site.some(1, 10)):
        run, seed = site.fresh("clock"), site.rng.randrange(1 << 30)
        step = site.rng.randrange(2, STEPS, 2)
        site.trained(run, wound=lambda s=seed, n=step: _jumping_and_dying(s, n))
        shift = site.rng.uniform(-30, 30) * YEAR
        _age(run, shift)
        what = f"jumps with seed {seed}, dead at step {step}, files aged by {shift / YEAR:.1f} years"
        end = site.trained(run, wound=lambda s=seed: jump(s + 1))
        wrong = end.last_words if end.code else difference(run, site.run)
        yield lost(what, wrong) if wrong else survived(what)


def jump(seed: int) -> None:
    """Let every look at the clock find another time, up to thirty years off."""
    rng, real = Random(seed), time.time

    def jumping() -> float:
        return max(1.0, real() + rng.uniform(-30, 30) * YEAR)

    time.time = jumping
    time.time_ns = lambda: int(jumping() * 1e9)


def _jumping_and_dying(seed: int, step: int) -> None:
    jump(seed)
    behind_rename(f"step-{step:09d}", die)


def _age(run: Path, seconds: float) -> None:
    """Each file as if written at another time, the later ones not always later."""
    for place in run.rglob("*"):
        when = max(1.0, place.stat().st_mtime + seconds * (1 if place.name > "m" else -1))
        os.utime(place, (when, when))
