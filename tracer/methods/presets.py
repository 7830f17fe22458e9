"""TRACER's loss under any teacher, and the coefficients it has been used with. Not a method: see `tracer`."""

from __future__ import annotations

from typing import Literal

from tracer.core.errors import unknown
from tracer.core.objective import Objective
from tracer.core.terms import contrastive, cross, cross_frobenius, feature, interactive, relational
from tracer.core.terms.contrastive import Targets

Preset = Literal["released", "equations", "feature"]

# "released" produced the paper's tables: its FD is a mean over the d = 512 coordinates times 2000, its CRD an
# average of two directions. "equations" is the paper's text: every term once. "feature" is FD alone, the loss
# that the paper's theory is about.
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


def composite(preset: Preset, strength: float, targets: Targets, **asked: float | None) -> Objective:
    """TRACER's loss under any teacher: a preset's coefficients, overridden where a number is given."""
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    weight = PRESETS[preset] | {name: value for name, value in asked.items() if value is not None}
    held = (
        weight["feature"] * feature()
        + weight["relational"] * relational()
        + weight["interactive"] * interactive(targets)
        + weight["cross"] * cross()
    )
    return contrastive(targets) + weight["frobenius"] * cross_frobenius() + strength * held
