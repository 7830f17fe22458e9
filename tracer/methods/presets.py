"""TRACER's loss, for any teacher, and its published coefficients. Not a method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from tracer.core.objective import Objective
from tracer.core.teachers import Buffers, Teacher
from tracer.core.terms import contrastive, cross, cross_frobenius, feature, interactive, relational
from tracer.core.terms.contrastive import Targets
from tracer.methods.base import Method, Stage
from tracer.models.trainable import Towers, towers

Preset = Literal["released", "equations", "feature"]

# "released" produced the paper's tables: its FD is a mean over the d = 512 coordinates times 2000, its CRD an
# average of two directions. "equations" has the coefficients of the paper's text. "feature" is FD only, the loss
# of the paper's theory.
PRESETS: dict[str, dict[str, float]] = {
    "released": {
        "feature": 2000 / 512,
        "relational": 0.5,
        "interactive": 1.0,
        "cross": 1.0,
        "frobenius": 0.05,
    },
    "equations": {"feature": 1.0, "relational": 1.0, "interactive": 1.0, "cross": 1.0, "frobenius": 0.05},
    "feature": {"feature": 1.0, "relational": 0.0, "interactive": 0.0, "cross": 0.0, "frobenius": 0.0},
}


def composite(preset: Preset, strength: float, targets: Targets, **overrides: float | None) -> Objective:
    """TRACER's loss with the coefficients of a preset; `overrides` that are not None replace them."""
    weight = PRESETS[preset] | {name: value for name, value in overrides.items() if value is not None}
    distillation = (
        weight["feature"] * feature()
        + weight["relational"] * relational()
        + weight["interactive"] * interactive(targets)
        + weight["cross"] * cross()
    )
    return contrastive(targets) + weight["frobenius"] * cross_frobenius() + strength * distillation


def self_distillation(
    title: str,
    teacher: Teacher | Callable[[int], Teacher],
    loss: Objective,
    tune: Towers,
    distill_pairs: int,
    buffers: Buffers = "copy",
    matter: tuple[str, ...] = ("strength", "lr"),
) -> Method:
    """A method of the TRACER paper: this teacher, and a loss that distils it."""
    stage = Stage(
        loss,
        teacher=teacher,
        buffers=buffers,
        tune=towers(tune),
        distill_pairs=distill_pairs,
    )
    return Method((stage,), title=title, paper="openreview:XOYXLQRlj8", year=2026, matter=matter)
