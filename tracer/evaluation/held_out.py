"""The accuracy that is shown during training."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.evaluation.predict import ImageFeatures, Scorer
from tracer.evaluation.retrieval import caption_accuracy


def held_out_accuracy(scorer: Scorer, features: ImageFeatures, templates: Sequence[str]) -> float:
    """Class accuracy, or caption accuracy if the data have no labels."""
    if features.examples.labelled:
        return scorer.score(features, templates).accuracy
    return caption_accuracy(scorer.student, features, scorer.world)
