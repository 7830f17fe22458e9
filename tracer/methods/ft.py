"""Direct finetuning: cross-entropy on the image tower and a head that starts as the zero-shot classifier."""

from __future__ import annotations

from tracer.method import Method, Stage
from tracer.terms import classify
from tracer.tune import ImageTower


def ft(*, smoothing: float = 0.0) -> Method:
    """Cross-entropy on image tower and head; the text tower only supplies the head's first weights.

    Args:
        smoothing: label smoothing.
    """
    return Method(
        (Stage(classify(smoothing), tune=ImageTower()),),
        title="Direct finetuning",
        paper="arXiv:2109.01903",
        year=2021,
    )
