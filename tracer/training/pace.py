"""When a run logs, evaluates and saves: at the steps that were set, else by the time that these take."""

from __future__ import annotations

from typing import NamedTuple

from tracer.parallel import World
from tracer.training.clock import Clock

SAVE_SECONDS = 120.0  # of training between two checkpoints, at least
SAVE_SHARE = 1 / 50  # of training time that may be spent on checkpoints
EVALUATION_SHARE = 0.05  # of training time that may be spent on evaluation
POINTS = 10  # evaluations of a run, at most
CERTAIN = (5, 10)  # those of them that do not depend on time
AGREEMENT_SECONDS = 1.0  # between two agreements of several processes
MAX_STRIDE = 10  # steps between them, at most


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
        self.log_every = max(1, min(10, steps // 50))
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
