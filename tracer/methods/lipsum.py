"""Lipsum-FT: finetuning that keeps the similarities of images to random texts."""

from __future__ import annotations

from tracer.core.kernels import family
from tracer.core.teachers import WMA, Frozen
from tracer.core.terms import classify, energy
from tracer.methods.base import Method, Stage
from tracer.methods.heads import ZeroShot
from tracer.methods.text_probes import RandomTexts
from tracer.models.trainable import ImageTower


def lipsum(*, strength: float = 1.0, texts: int = 80, length: int = 8, beta: float | None = None) -> Method:
    """Cross-entropy plus λ times the change in similarity to random texts.

    It is the squared change of the images' similarities to the texts.

    Args:
        strength: λ, the weight of the distillation loss.
        texts: number of random texts per step.
        length: tokens per random text.
        beta: distil from TRACER's weighted average with this Beta shape, instead of the pretrained model.
    """
    kernel_of = None if beta is None else family("beta", beta=beta)
    stage = Stage(
        classify() + strength * energy(),
        teacher=Frozen() if kernel_of is None else lambda steps: WMA(kernel_of(steps)),
        tune=ImageTower(),
        head=ZeroShot(folded=False, bias=False),
        probe=RandomTexts(texts, length),
    )
    return Method(
        (stage,), title="Lipsum-FT", paper="arXiv:2404.00860", year=2024, matter=("strength", "lr", "decay")
    )
