"""LP-FT: a linear probe before finetuning, so that a random head does not distort the features."""

from __future__ import annotations

from tracer.core.terms import classify
from tracer.methods.base import Method, Stage
from tracer.methods.lp import Solver, head_stage
from tracer.models.trainable import ImageTower


def lpft(
    *,
    solver: Solver = "steps",
    unit: bool = False,
    l2: float = 1e-3,
    head_rate: float = 100.0,
    head_share: float = 1 / 3,
) -> Method:
    """A linear probe, then cross-entropy on the image tower and that head.

    Args:
        solver: of the probe: "steps" of training, or "lbfgs" on features computed once.
        unit: normalise the features to unit length.
        l2: with lbfgs, the penalty (l2/2)‖W‖².
        head_rate: with steps, the probe's learning rate as a multiple of --lr.
        head_share: with steps, the fraction of training for the probe; published: 5 of 15 epochs.
    """
    if not 0 < head_share < 1:
        raise ValueError(f"head_share is between 0 and 1, not {head_share}")
    first = head_stage(solver, unit, l2, head_rate, head_share)
    second = Stage(classify(), tune=ImageTower(), share=1 - head_share)
    return Method(
        (first, second),
        title="LP-FT",
        paper="arXiv:2202.10054",
        year=2022,
        matter=("lr", "head_rate", "head_share"),
    )
