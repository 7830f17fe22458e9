"""Lipsum-FT: finetuning under which random texts stay as near to each image as they were."""

from __future__ import annotations

from tracer.core.kernels import family
from tracer.core.teachers import WMA, Frozen
from tracer.core.terms import classify, energy
from tracer.methods.base import Method, Stage
from tracer.methods.heads import ZeroShot
from tracer.methods.text_probes import RandomTexts
from tracer.models.trainable import ImageTower


def lipsum(*, strength: float = 1.0, texts: int = 80, length: int = 8, beta: float | None = None) -> Method:
    """Cross-entropy plus λ times the change of the images' similarities to texts without meaning.

    Args:
        strength: λ, the weight of the change.
        texts: random texts a step.
        length: tokens of each.
        beta: hold to TRACER's average of the path, with this shape of its kernel, instead of the pretrained model.
    """
    moving = None if beta is None else family("beta", beta=beta)
    stage = Stage(
        classify() + strength * energy(),
        teacher=Frozen() if moving is None else lambda steps: WMA(moving(steps)),
        tune=ImageTower(),
        head=ZeroShot(folded=False, bias=False),
        probe=RandomTexts(texts, length),
    )
    return Method(
        (stage,), title="Lipsum-FT", paper="arXiv:2404.00860", year=2024, matter=("strength", "lr", "decay")
    )
