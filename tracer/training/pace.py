"""Where the time of a run goes, and when it logs, evaluates and saves: at steps that were set, else by that time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from tracer.parallel import World

T = TypeVar("T")

# What a run does, in this order: reading data and model, waiting for batches, steps, evaluation, checkpoints, results.
ACTIVITIES = ("start", "data", "steps", "evaluating", "saving", "end")

SAVE_SECONDS = 120.0  # of training between two checkpoints, at least
SAVE_SHARE = 1 / 50  # of training time that may be spent on checkpoints
EVALUATION_SHARE = 0.05  # of training time that may be spent on evaluation
POINTS = 10  # evaluations of a run, at most
CERTAIN = (5, 10)  # those of them that do not depend on time
AGREEMENT_SECONDS = 1.0  # between two agreements of several processes
MAX_STRIDE = 10  # steps between them, at most


class Clock:
    """Seconds spent in each activity by this process; nothing that a run computes depends on them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(ACTIVITIES, 0.0)

    @contextmanager
    def measure(self, activity: str) -> Iterator[None]:
        """Count the time of a block."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[activity] += time.monotonic() - start

    def wait_for(self, batches: Iterable[T]) -> Iterator[T]:
        """The batches; the time until each is there counts as data."""
        iterator = iter(batches)
        while True:
            with self.measure("data"):
                try:
                    batch = next(iterator)
                except StopIteration:
                    return
            yield batch

    @property
    def training(self) -> float:
        """Seconds of batches and steps."""
        return self.seconds["data"] + self.seconds["steps"]

    def __str__(self) -> str:
        total = sum(self.seconds.values())
        parts = [f"{name} {time_text(value)}" for name, value in self.seconds.items() if value > 0.01 * total]
        return f"{time_text(total)}: {', '.join(parts)}"


def time_text(seconds: float) -> str:
    """Seconds, minutes or hours, to two digits or so: 9.5 s, 12 min, 3.4 h."""
    if seconds < 99.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{seconds / 3600:.1f} h"


def log_interval(steps: int) -> int:
    """Steps between two lines of the log."""
    return max(1, min(10, steps // 50))


class Decision(NamedTuple):
    """What follows a step."""

    log: bool
    evaluate: bool
    save: bool
    signal: int | None = None  # stop, because of this signal


class Pace:
    """Decides after each step what follows it; several processes follow the first one, at the same step.

    Weights do not depend on it: each step sets its own random seed.
    """

    def __init__(
        self, steps: int, world: World, clock: Clock, save_every: int | None, evaluate_every: int | None
    ) -> None:
        self.world, self.clock = world, clock
        self.save_every, self.evaluate_every = save_every, evaluate_every
        self.log_every = log_interval(steps)
        points = {
            max(1, round(steps * part / POINTS)): part in CERTAIN
            for part in (*range(1, POINTS + 1), *CERTAIN)
        }
        self.points = points if evaluate_every is None else {}
        self.taken = 0  # steps of this process
        self._agreement = 0  # the number of steps taken at the next agreement
        self._evaluation = self._save = 0.0  # seconds of the last one
        self._saved_at = 0.0  # training seconds at the last checkpoint

    def after(self, step: int, last: bool, signal: int | None, failed: bool = False) -> Decision:
        """What follows `step`, which may be the `last` of a stage.

        `signal` is one that this process has received; `failed` is whether it could not write the last checkpoint.
        """
        self.taken += 1
        log = last or step % self.log_every == 0
        evaluate = (
            last
            or self.points.get(step, False)
            or bool(self.evaluate_every and not step % self.evaluate_every)
        )
        save = last or bool(self.save_every and not step % self.save_every)
        if self.taken < self._agreement and not (log or save or step in self.points):
            return Decision(log, evaluate, save)
        messages = self.world.agree(
            {
                "signal": signal or 0,
                "evaluate": step in self.points and self._may_evaluate,
                "save": failed or (self.save_every is None and self._may_save),
                "stride": self._stride,
            }
        )
        first = messages[0]
        self._agreement = self.taken + first["stride"]
        signal = max(message["signal"] for message in messages) or None
        return Decision(
            log, evaluate or first["evaluate"], save or first["save"] or signal is not None, signal
        )

    def evaluated(self, seconds: float) -> None:
        """An evaluation has taken this long."""
        self._evaluation = seconds

    def saved(self, seconds: float) -> None:
        """A checkpoint has taken this long."""
        self._save, self._saved_at = seconds, self.clock.training

    @property
    def _may_evaluate(self) -> bool:
        spent = self.clock.seconds["evaluating"] + self._evaluation
        return spent <= EVALUATION_SHARE * self.clock.training

    @property
    def _may_save(self) -> bool:
        return self.clock.training - self._saved_at >= max(SAVE_SECONDS, self._save / SAVE_SHARE)

    @property
    def _stride(self) -> int:
        """Steps until the next agreement: about a second, so that a signal is answered soon even if steps are slow."""
        if self.world.size == 1:
            return 1
        return max(1, min(MAX_STRIDE, int(AGREEMENT_SECONDS * self.taken / max(self.clock.training, 1e-9))))
