"""LP-FT: first the head alone, then everything, so that the features are not distorted by a random head."""

from __future__ import annotations

from tracer.core.terms import classify
from tracer.methods.base import Method, Stage
from tracer.methods.lp import Solver, probe
from tracer.models.trainable import ImageTower


def lpft(
    *,
    solver: Solver = "steps",
    unit: bool = False,
    l2: float = 1e-3,
    head_rate: float = 100.0,
    head_share: float = 1 / 3,
    norms: bool = True,
) -> Method:
    """A linear probe, then cross-entropy on image tower and head from there.

    Args:
        solver: how the probe is found: "steps", or "lbfgs" on cached features.
        unit: divide features by their length before the head.
        l2: with lbfgs, the penalty (l2/2)‖W‖².
        head_rate: with steps, the probe's learning rate as a multiple of --lr.
        head_share: with steps, the share of training that goes to the probe; published: 5 of 15 epochs.
        norms: let the statistics of BatchNorm move in the second stage.
    """
    if not 0 < head_share < 1:
        raise ValueError(f"head_share is between 0 and 1, not {head_share}")
    first = probe(solver, unit, l2, head_rate, head_share)
    second = Stage(classify(), tune=ImageTower(norms=norms), share=1 - head_share)
    return Method(
        (first, second),
        title="LP-FT",
        paper="arXiv:2202.10054",
        year=2022,
        matter=("lr", "head_rate", "head_share"),
    )
