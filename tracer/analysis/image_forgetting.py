"""The forgetting meter (`tracer.analysis.forgetting`) on the image towers of two students."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jaxtyping import Num
from torch import Tensor

from tracer.analysis.forgetting import FeatureRow, WeightRow, feature_rows, weight_rows
from tracer.core.errors import UserError
from tracer.models.student import Student


def forgetting_rows(
    before: Student,
    after: Student,
    task: Sequence[Num[Tensor, "n 3 h w"]],
    retained: Sequence[Num[Tensor, "m 3 h w"]] = (),
) -> tuple[list[WeightRow], list[FeatureRow]]:
    """Rows on the update of each linear layer, and on its effect on the features of retained images, if any."""

    def run(clip: Any, images: Tensor) -> object:
        return clip.encode_image(before.pixels(images))

    weights = weight_rows(before.clip, after.clip, task, run=run)
    return weights, feature_rows(before.clip, after.clip, task, retained, run=run) if retained else []


def update_share(rows: Iterable[WeightRow]) -> tuple[float, float]:
    """The share of the whole update inside the task subspaces, and its expectation for a random update.

    Σ‖ΔW P‖² / Σ‖ΔW‖² and Σ‖ΔW‖² rank/width / Σ‖ΔW‖²; both NaN where nothing changed.
    """
    norms = [(row, row.inside**2 + row.outside**2) for row in rows]
    total = sum(norm for _, norm in norms)
    if not total:
        return float("nan"), float("nan")
    inside = sum(row.inside**2 for row, _ in norms)
    return inside / total, sum(row.chance * norm for row, norm in norms) / total


def forgetting_summary(
    before: Student, after: Student, task: Sequence[Tensor], retained: Sequence[Tensor]
) -> dict[str, Any]:
    """All rows and the shares as JSON values; `skipped` gives the reason where two towers cannot be compared."""
    try:
        weights, features = forgetting_rows(before, after, task, retained)
    except UserError as reason:
        return {"skipped": str(reason)}
    share, chance = update_share(weights)
    return {
        "share": share,
        "chance": chance,
        "weights": [{**row._asdict(), "chance": row.chance} for row in weights],
        "features": [row._asdict() for row in features],
    }
