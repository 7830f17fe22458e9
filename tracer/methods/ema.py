"""EMA: the result is the exponential moving average of the finetuned weights."""

from __future__ import annotations

from tracer.core.teachers import EMA, Buffers
from tracer.methods.base import Method, keep_teacher
from tracer.methods.supervised import Loss, task
from tracer.models.trainable import Towers


def ema(
    *,
    horizon: float = 0.2,
    every: int = 1,
    loss: Loss = "contrastive",
    tune: Towers = "both",
    buffers: Buffers = "copy",
) -> Method:
    """A task loss; the result is the EMA of the weights.

    Nothing is distilled from it.

    Args:
        horizon: averaging time as a fraction of training.
        every: steps between two updates of the average.
        loss: the task loss: "contrastive", or "classify" with a head on the image tower.
        tune: with the contrastive loss, train "both" towers, the "image" tower, "norms", "biases" or "last-6" blocks.
        buffers: BatchNorm statistics of the average: "copy" the student's, "average", or "keep" the pretrained.
    """
    return Method(
        (task(loss, tune=tune, teacher=EMA(horizon=horizon, every=every), buffers=buffers),),
        finish=keep_teacher,
        title="EMA of weights",
        paper="arXiv:1703.01780",
        year=2017,
        matter=("horizon", "lr"),
    )
