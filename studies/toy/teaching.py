"""How teacher and student diverge over a run, for several teachers under TRACER's loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracer.runs.record import read
from tracer.runs.run import Run

PROBES = ("kl", "teacher_entropy", "teacher_confidence", "agreement")
LATER = (0.1, 0.5, 0.9, 1.0)  # shares of training at which curves are compared


@dataclass(frozen=True)
class Curves:
    """Measures of one run against training progress; the weight gap is logged at other steps than the rest."""

    progress: list[float]
    probes: dict[str, list[float]]
    gap_progress: list[float]
    gap: list[float]

    def window(self, at: float, measure: str = "kl", width: float = 0.02) -> float:
        """The mean of a measure around a share of training, since batches are noisy."""
        reach = width + 1e-9  # 0.12 − 0.1 is more than 0.02
        near = [i for i, time in enumerate(self.progress) if abs(time - at) <= reach]
        return float(np.mean([self.probes[measure][i] for i in near]))

    def smooth(self, measure: str = "kl") -> list[float]:
        """A measure over time, each value averaged with its neighbours."""
        return [self.window(time, measure) for time in self.progress]


def teachers(steps: int) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Title, folder, method and options of every run; intervals are shares of training, as in the released logs."""
    for title, folder, options in (
        ("EMA, every step", "ema", {"horizon": 10 / steps}),
        ("EMA, every 2 % of T", "ema-sparse", {"horizon": 0.2, "every": max(1, steps // 50)}),
    ):
        yield title, folder, "ema_sd", options
    for beta in (0.2, 0.5, 1.0, 1.5):
        yield f"WMA β = {beta:g}", f"beta-{beta:g}", "tracer", {"beta": beta}
    for share in (2, 20):
        for clock in ("progress", "updates"):
            options = {"beta": 0.5, "every": max(1, steps * share // 100), "clock": clock}
            title = f"WMA β = 0.5, every {share} % of T, clock: {clock}"
            yield title, f"every-{options['every']}-{clock}", "tracer", options


def curves(run: Run) -> Curves:
    """The curves in the log of a run."""
    log = run.folder / "log.jsonl"
    steps = run.description["steps"]
    train = [line for line in read(log, "train") if "kl" in line]
    held_out = [line for line in read(log, "held_out") if "weight_gap" in line]
    return Curves(
        progress=[line["step"] / steps for line in train],
        probes={name: [_short(line[name]) for line in train] for name in PROBES},
        gap_progress=[line["step"] / steps for line in held_out],
        gap=[_short(line["weight_gap"]) for line in held_out],
    )


def _short(value: float) -> float:
    """Six significant digits: the axis of the KL is logarithmic."""
    return float(f"{value:.6g}")


@dataclass(frozen=True)
class Shape:
    """The peak of a KL curve, when it is reached, and the share of the peak that is left later."""

    peak: float
    at: float
    left: dict[float, float]


def shape(run: Curves) -> Shape:
    """The shape of the smoothed KL of a run."""
    smooth = run.smooth()
    top = int(np.argmax(smooth))
    left = {share: run.window(share) / smooth[top] for share in LATER}
    return Shape(smooth[top], run.progress[top], left)
