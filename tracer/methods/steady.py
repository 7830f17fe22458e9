"""Steady: TRACER with three terms and a firmer hand, our proposal for little data and a model that is good at it."""

from __future__ import annotations

from dataclasses import replace

from tracer.core.terms.contrastive import Targets
from tracer.methods.base import Method
from tracer.methods.tracer import tracer
from tracer.models.trainable import Towers


def steady(
    *,
    strength: float = 10.0,
    beta: float = 0.5,
    targets: Targets = "class",
    tune: Towers = "both",
    distill_every: int = 1,
) -> Method:
    """TRACER without its interactive term and at λ = 10: keeps more of a model that is good at the task already; ours.

    Found on EmojiShift: docs/emojishift.md tells where it is ahead of TRACER there and where it is not. Where the
    pretrained model is weak on the task, it learns too little, and TRACER as it is learns twice as much.

    Args:
        strength: λ, the weight of all distillation together.
        beta: shape of the Beta kernel; 0.5 weighs both ends of the path most, 1 is a plain mean.
        targets: "class" counts all pairs of one label as positive; "pair" is the paper's diagonal.
        tune: "both" towers, or the "image" tower alone, which leaves text and temperature as they are.
        distill_every: listen to the teacher each so many steps, as many times as loudly: approximate, cheaper.
    """
    made = tracer(
        strength=strength, beta=beta, targets=targets, tune=tune, distill_every=distill_every, interactive=0.0
    )
    return replace(made, title="Steady (ours)", paper="ours:emojishift.md", matter=("strength", "lr"))
