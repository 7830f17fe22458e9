"""EMA: finetuning whose result is the exponential moving average of its weights."""

from __future__ import annotations

from tracer.core.teachers import EMA
from tracer.methods.base import Method
from tracer.methods.finish import keep_teacher
from tracer.methods.supervised import Loss, task
from tracer.models.trainable import Towers


def ema(*, horizon: float = 0.2, every: int = 1, loss: Loss = "contrastive", tune: Towers = "both") -> Method:
    """Nobody teaches: the average follows the student and is kept in its place.

    Args:
        horizon: the average's memory as a share of training.
        every: steps between two moves of the average.
        loss: the task loss: the contrastive loss, or a classification head on the image tower.
        tune: under the contrastive loss, "both" towers or the "image" tower alone.
    """
    return Method(
        (task(loss, tune=tune, teacher=EMA(horizon=horizon, every=every)),),
        finish=keep_teacher,
        title="EMA of weights",
        paper="arXiv:1703.01780",
        year=2017,
        matter=("horizon", "lr"),
    )
