"""The frontier of an arm: task accuracy against the share that is kept, over all its settings and α, and its area."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from studies.emojishift.checks import Arms, Check, Comparison
from studies.emojishift.compare import over_seeds, resampled
from studies.photoshift.rows import PhotoRow
from tracer.core.metrics import Interval
from tracer.fitting.choice import area

Runs = dict[tuple[int, int], list[PhotoRow]]  # all settings of an arm by task and seed


def by_trial(rows: Sequence[PhotoRow]) -> Runs:
    """The rows of each task and seed."""
    trials: Runs = {}
    for row in rows:
        trials.setdefault((row.fold, row.seed), []).append(row)
    return trials


def areas(rows: Sequence[PhotoRow], most: float = np.inf) -> Float[np.ndarray, " d"]:
    """The area below an arm's frontier on one task and seed, on all pictures and on each resample of them.

    A point is a setting at an α: its task accuracy, and its accuracy on what should be kept relative to the model
    before training, which is a point of every arm. A share counts up to `most`: 1 leaves out what improved.
    """
    start = np.maximum(resampled(rows[:1], "retention", 0.0), 1e-9)
    points = [
        (resampled([row], "id", alpha), np.minimum(resampled([row], "retention", alpha) / start, most))
        for row in rows
        for alpha in row.alphas
    ]
    task, kept = (np.stack(each, axis=1) for each in zip(*points, strict=True))
    return np.array([area(list(zip(*each, strict=True))) for each in zip(task, kept, strict=True)])


def area_of(trials: Mapping[tuple[int, int], Float[np.ndarray, " d"]]) -> Interval:
    """The mean area over tasks and seeds with its 95 % interval over pictures and seeds."""
    scores = np.mean(list(trials.values()), axis=0)
    return over_seeds(scores, [(task, float(each[0])) for (task, _), each in trials.items()])


def trial_areas(
    rows: Sequence[PhotoRow], most: float = np.inf
) -> dict[tuple[int, int], Float[np.ndarray, " d"]]:
    """The areas of an arm by task and seed."""
    return {trial: areas(own, most) for trial, own in by_trial(rows).items()}


def area_difference(first: Sequence[PhotoRow], second: Sequence[PhotoRow], most: float = np.inf) -> Interval:
    """The difference of two arms' mean areas, paired by task, seed and picture."""
    one, other = trial_areas(first, most), trial_areas(second, most)
    if one.keys() != other.keys():
        raise ValueError("two arms with the same tasks and seeds expected")
    return area_of({trial: one[trial] - other[trial] for trial in one})


def larger_area(first: str, *others: str) -> Check:
    """The frontier of `first` has a larger area than that of each of the others."""

    def check(arms: Arms) -> list[Comparison]:
        return [
            Comparison(f"area: {first} − {other}", area_difference(arms[first], arms[other]))  # pyright: ignore
            for other in others
        ]

    return check
