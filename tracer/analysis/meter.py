"""The forgetting meter (`tracer.analysis.forgetting`) on the image towers of two students."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jaxtyping import Num
from torch import Tensor

from tracer.analysis.forgetting import FeatureRow, WeightRow, feature_rows, weight_rows
from tracer.core.errors import UserError
from tracer.models.student import Student


def metered(
    before: Student,
    after: Student,
    task: Sequence[Num[Tensor, "n 3 h w"]],
    retained: Sequence[Num[Tensor, "m 3 h w"]] = (),
) -> tuple[list[WeightRow], list[FeatureRow]]:
    """Where the update of each linear layer lies, and what it does to images that are not the task's, if any."""

    def see(clip: Any, images: Tensor) -> object:
        return clip.encode_image(before.pixels(images))

    weights = weight_rows(before.clip, after.clip, task, run=see)
    return weights, feature_rows(before.clip, after.clip, task, retained, run=see) if retained else []


def overall(rows: Iterable[WeightRow]) -> tuple[float, float]:
    """The share of the whole update inside the task's subspaces, and of one as large in each layer that knows no task.

    Σ‖ΔW P‖² / Σ‖ΔW‖² and Σ‖ΔW‖² rank/width / Σ‖ΔW‖²; not a number where nothing changed.
    """
    sizes = [(row, row.inside**2 + row.outside**2) for row in rows]
    whole = sum(size for _, size in sizes)
    if not whole:
        return float("nan"), float("nan")
    return sum(row.inside**2 for row, _ in sizes) / whole, sum(
        row.chance * size for row, size in sizes
    ) / whole


def account(
    before: Student, after: Student, task: Sequence[Tensor], retained: Sequence[Tensor]
) -> dict[str, Any]:
    """All of it as a value for JSON; a tower without linear layers, or of other parameters, is said to be one."""
    try:
        weights, features = metered(before, after, task, retained)
    except UserError as reason:
        return {"skipped": str(reason)}
    share, chance = overall(weights)
    seen = [{**row._asdict(), "chance": row.chance} for row in weights]
    return {
        "share": share,
        "chance": chance,
        "weights": seen,
        "features": [row._asdict() for row in features],
    }
