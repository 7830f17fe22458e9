"""Steady: TRACER with three terms and a larger λ, our proposal, which did not hold on fresh data."""

from __future__ import annotations

from dataclasses import replace

from tracer.core.teachers import Buffers
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
    buffers: Buffers = "copy",
) -> Method:
    """TRACER without its interactive term; did not hold on fresh data.

    It was the best of TRACER's variants on the folds of EmojiShift that chose it; on fresh folds its lead is inside the
    noise, and where the pretrained model is weak on the task it learns half as much as TRACER (docs/emojishift.md).
    Kept so that these results can be repeated; use `tracer` with a higher strength instead.

    Args:
        strength: λ, the weight of the distillation loss.
        beta: shape of the Beta kernel; 0.5 weighs both ends of training most, 1 is a plain mean.
        targets: positives of an image: all texts of its "class", or its own "pair" only, as in the paper.
        tune: train "both" towers and the temperature, the "image" tower, "norms", "biases", or "last-6" blocks.
        distill_every: run the teacher every k-th step and scale its loss by k; approximate, cheaper.
        buffers: BatchNorm statistics of the teacher: "copy" the student's, "average", or "keep" the pretrained.
    """
    base = tracer(
        strength=strength,
        beta=beta,
        targets=targets,
        tune=tune,
        distill_every=distill_every,
        buffers=buffers,
        interactive=0.0,
    )
    return replace(base, title="Steady (ours)", paper="ours:emojishift.md", matter=("strength", "lr"))
