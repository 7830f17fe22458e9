"""EMA self-distillation: TRACER's loss with an EMA teacher."""

from __future__ import annotations

from tracer.core.teachers import EMA, Buffers
from tracer.core.terms.contrastive import Targets
from tracer.methods.base import Method
from tracer.methods.presets import Preset, composite, self_distillation
from tracer.models.trainable import Towers


def ema_sd(
    *,
    horizon: float = 0.2,
    momentum: float | None = None,
    ramp: float = 0.0,
    every: int = 1,
    preset: Preset = "released",
    strength: float = 0.9,
    targets: Targets = "class",
    tune: Towers = "both",
    distill_pairs: int = 1,
    buffers: Buffers = "copy",
) -> Method:
    """TRACER's loss with an EMA of the student as teacher.

    Such a teacher forgets the pretrained weights over time.

    Args:
        horizon: averaging time as a fraction of training; at 0.5 the mean age is that of TRACER's teacher.
        momentum: of each update, instead of a horizon; the paper's figures: 0.9, with ramp 0.2 and every 1 or 500.
        ramp: fraction of training in which the momentum rises from 0.05.
        every: steps between two updates of the teacher.
        preset: coefficients of the loss terms, as in TRACER.
        strength: λ, the weight of the distillation loss.
        targets: positives of an image: all texts of its "class", or its own "pair" only, as in the paper.
        tune: train "both" towers and the temperature, the "image" tower, "norms", "biases", or "last-6" blocks.
        distill_pairs: show the teacher every k-th pair of a batch; approximate, cheaper.
        buffers: BatchNorm statistics of the teacher: "copy" the student's, "average", or "keep" the pretrained.
    """
    if momentum is not None and horizon != 0.2:
        raise ValueError(f"give a momentum ({momentum:g}) or a horizon ({horizon:g}), not both")
    memory = {"horizon": horizon} if momentum is None else {"momentum": momentum}
    teacher = EMA(**memory, every=every, ramp=ramp)
    loss = composite(preset, strength, targets)
    title, matter = "EMA self-distillation", ("horizon", "strength", "lr")
    return self_distillation(title, teacher, loss, tune, distill_pairs, buffers, matter)
