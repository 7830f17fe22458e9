"""TRACER: contrastive finetuning with distillation from a weighted moving average of the student."""

from __future__ import annotations

from tracer.core.kernels import family
from tracer.core.teachers import WMA, Buffers, Clock
from tracer.core.terms.contrastive import Targets
from tracer.methods.base import Method
from tracer.methods.presets import Preset, composite, self_distillation
from tracer.models.trainable import Towers


def tracer(
    *,
    preset: Preset = "released",
    kernel: str = "beta",
    beta: float = 0.5,
    every: int = 1,
    clock: Clock = "progress",
    strength: float = 0.9,
    targets: Targets = "class",
    tune: Towers = "both",
    distill_pairs: int = 1,
    buffers: Buffers = "copy",
    feature: float | None = None,
    relational: float | None = None,
    interactive: float | None = None,
    cross: float | None = None,
    frobenius: float | None = None,
) -> Method:
    """Contrastive loss plus distillation from the average of all weights.

    There are four distillation losses; the teacher is a weighted average of all weights since the pretrained ones.

    Args:
        preset: coefficients: "released" (the paper's tables), "equations" (its text), "feature" (FD only).
        kernel: weights over time: beta, uniform, early, late, triangular, exponential; NAME:SHAPE sets its shape.
        beta: shape of the Beta kernel; 0.5 weighs both ends of training most, 1 is a plain mean.
        every: steps between two updates of the teacher.
        clock: "progress" keeps the kernel's shape at any `every`; "updates" reproduces the released code.
        strength: λ, the weight of the distillation loss.
        targets: positives of an image: all texts of its "class", or its own "pair" only, as in the paper.
        tune: train "both" towers and the temperature, the "image" tower, "norms", "biases", or "last-6" blocks.
        distill_pairs: show the teacher every k-th pair of a batch; approximate, cheaper.
        buffers: BatchNorm statistics of the teacher: "copy" the student's, "average", or "keep" the pretrained.
        feature: weight of FD, the squared distance between embeddings.
        relational: weight of CRD, the KL between similarities.
        interactive: weight of ICL, the contrastive loss between student and teacher embeddings.
        cross: weight of CrossKD, the KL of student-to-teacher similarities.
        frobenius: weight of the penalty on the overlap of the two projections.
    """
    coefficients = {"feature": feature, "relational": relational, "interactive": interactive, "cross": cross}
    loss = composite(preset, strength, targets, **coefficients, frobenius=frobenius)
    kernel_of = family(kernel, beta=beta)

    def teacher(steps: int) -> WMA:
        return WMA(kernel_of(steps), every, clock)

    teacher(1)  # validate the arguments early
    matter = ("strength", "beta", "lr")
    return self_distillation("TRACER", teacher, loss, tune, distill_pairs, buffers, matter)
