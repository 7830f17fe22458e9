"""TRACER: contrastive finetuning held to a weighted moving average of its own path."""

from __future__ import annotations

from typing import Literal

from tracer.core.kernels import family
from tracer.core.teachers import WMA
from tracer.core.terms.contrastive import Targets
from tracer.methods.base import Method, Stage
from tracer.methods.presets import Preset, composite
from tracer.models.trainable import Towers, towers


def tracer(
    *,
    preset: Preset = "released",
    kernel: str = "beta",
    beta: float = 0.5,
    every: int = 1,
    clock: Literal["progress", "updates"] = "progress",
    strength: float = 0.9,
    targets: Targets = "class",
    tune: Towers = "both",
    distill_every: int = 1,
    feature: float | None = None,
    relational: float | None = None,
    interactive: float | None = None,
    cross: float | None = None,
    frobenius: float | None = None,
) -> Method:
    """Contrastive loss plus four ways of listening to a teacher that averages the student's whole path.

    Args:
        preset: coefficients: "released" (the paper's tables), "equations" (its text), "feature" (FD alone).
        kernel: which moments count: beta, uniform, early, late, triangular, exponential; a shape follows, as in late:2.
        beta: shape of the Beta kernel; 0.5 weighs both ends of the path most, 1 is a plain mean.
        every: steps between two moves of the teacher.
        clock: "progress" keeps the kernel's shape at any `every`; "updates" reproduces the released code.
        strength: λ, the weight of all distillation together.
        targets: "class" counts all pairs of one label as positive; "pair" is the paper's diagonal.
        tune: "both" towers, or the "image" tower alone, which leaves text and temperature as they are.
        distill_every: listen to the teacher each so many steps, as many times as loudly: approximate, cheaper.
        feature: weight of FD, the distance of embeddings.
        relational: weight of CRD, the divergence of similarities.
        interactive: weight of ICL, the student's contrastive loss against the teacher's embeddings.
        cross: weight of CrossKD, the divergence of student-to-teacher similarities.
        frobenius: weight of the penalty on the two projections' overlap.
    """
    asked = {"feature": feature, "relational": relational, "interactive": interactive, "cross": cross}
    loss = composite(preset, strength, targets, **asked, frobenius=frobenius)
    shaped = family(kernel, beta=beta)

    def teacher(steps: int) -> WMA:
        return WMA(shaped(steps), every, clock)

    teacher(1)  # what it cannot be is refused now
    return Method(
        (Stage(loss, teacher=teacher, tune=towers(tune), distill_every=distill_every),),
        title="TRACER",
        paper="openreview:XOYXLQRlj8",
        year=2026,
        matter=("strength", "beta", "lr"),
    )
