"""Linear probe: a classification head on frozen pretrained features."""

from __future__ import annotations

from typing import Literal

from tracer.core.terms import classify
from tracer.methods.base import Method, Stage
from tracer.methods.heads import Random, Solved
from tracer.models.trainable import HeadOnly

Solver = Literal["steps", "lbfgs"]


def lp(*, solver: Solver = "steps", unit: bool = False, l2: float = 1e-3, head_rate: float = 100.0) -> Method:
    """Cross-entropy on a linear head; both towers are frozen.

    Args:
        solver: "steps" trains a random head on augmented images; "lbfgs" solves on features computed once.
        unit: normalise the features to unit length; the released code does not.
        l2: with lbfgs, the penalty (l2/2)‖W‖².
        head_rate: with steps, the learning rate as a multiple of --lr.
    """
    return Method(
        (head_stage(solver, unit, l2, head_rate),),
        title="Linear probe",
        paper="arXiv:2103.00020",
        year=2021,
        matter=("solver", "lr", "l2"),
    )


def head_stage(solver: Solver, unit: bool, l2: float, rate: float, share: float = 1.0) -> Stage:
    """A stage that trains the head only; with "lbfgs" it has no steps."""
    if solver == "lbfgs":
        return Stage(classify(), tune=HeadOnly(), head=Solved(l2, unit), share=0.0)
    return Stage(classify(), tune=HeadOnly(), head=Random(unit), rate=rate, share=share)
