"""Direct finetuning: cross-entropy on the image tower and a head that starts as the zero-shot classifier."""

from __future__ import annotations

from typing import Literal

from tracer.core.terms import classify
from tracer.methods.base import Method, Stage
from tracer.methods.heads import ZeroShot
from tracer.models.trainable import ImageTower

Temperature = Literal["learned", "fixed"]


def ft(*, smoothing: float = 0.0, temperature: Temperature = "learned", frozen_head: bool = False) -> Method:
    """Cross-entropy on the image tower and a head that starts zero-shot.

    Args:
        smoothing: label smoothing.
        temperature: "learned" folds it into the head's weights; "fixed" keeps it constant, without a bias.
        frozen_head: keep the zero-shot classifier as the head, so that the tower stays open-vocabulary (PAINT).
    """
    learned = temperature == "learned"
    stage = Stage(
        classify(smoothing),
        tune=ImageTower(head=not frozen_head),
        head=ZeroShot(folded=learned, bias=learned),
    )
    return Method(
        (stage,), title="Direct finetuning", paper="arXiv:2109.01903", year=2021, matter=("lr", "epochs")
    )
