"""EMA self-distillation: TRACER's own loss with an exponential moving average as teacher."""

from __future__ import annotations

from tracer.core.teachers import EMA
from tracer.core.terms.contrastive import Targets
from tracer.methods.base import Method, Stage
from tracer.methods.presets import Preset, composite
from tracer.models.trainable import Towers, towers


def ema_sd(
    *,
    horizon: float = 0.2,
    every: int = 1,
    preset: Preset = "released",
    strength: float = 0.9,
    targets: Targets = "class",
    tune: Towers = "both",
    distill_every: int = 1,
) -> Method:
    """The same composite loss under an EMA teacher; an EMA forgets the start, a weighted average need not.

    Args:
        horizon: the teacher's memory as a share of training; 0.5 has the mean age of TRACER's teacher.
        every: steps between two moves of the teacher.
        preset: coefficients of the terms, as in TRACER.
        strength: λ, the weight of all distillation together.
        targets: "class" counts all pairs of one label as positive; "pair" is the paper's diagonal.
        tune: "both" towers, or the "image" tower alone, which leaves text and temperature as they are.
        distill_every: listen to the teacher each so many steps, as many times as loudly: approximate, cheaper.
    """
    loss = composite(preset, strength, targets)
    return Method(
        (
            Stage(
                loss,
                teacher=EMA(horizon=horizon, every=every),
                tune=towers(tune),
                distill_every=distill_every,
            ),
        ),
        title="EMA self-distillation",
        paper="openreview:XOYXLQRlj8",
        year=2026,
        matter=("horizon", "strength", "lr"),
    )
