"""Static self-distillation: TRACER's own loss with a teacher that never moves."""

from __future__ import annotations

from tracer.core.teachers import Frozen
from tracer.core.terms.contrastive import Targets
from tracer.methods.base import Method, Stage
from tracer.methods.presets import Preset, composite
from tracer.models.trainable import Towers, towers


def static_sd(
    *,
    preset: Preset = "released",
    strength: float = 0.9,
    targets: Targets = "class",
    tune: Towers = "both",
    distill_every: int = 1,
) -> Method:
    """The control that isolates TRACER's teacher: the same composite loss, the pretrained model as teacher.

    Args:
        preset: coefficients of the terms, as in TRACER.
        strength: λ, the weight of all distillation together.
        targets: "class" counts all pairs of one label as positive; "pair" is the paper's diagonal.
        tune: "both" towers, or the "image" tower alone, which leaves text and temperature as they are.
        distill_every: listen to the teacher each so many steps, as many times as loudly: approximate, cheaper.
    """
    loss = composite(preset, strength, targets)
    return Method(
        (Stage(loss, teacher=Frozen(), tune=towers(tune), distill_every=distill_every),),
        title="Static self-distillation",
        paper="openreview:XOYXLQRlj8",
        year=2026,
        matter=("strength", "lr"),
    )
