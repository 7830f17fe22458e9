"""Hits and misses on the held-out set."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.evaluation.predict import ImageFeatures, Scorer
from tracer.evaluation.retrieval import caption_hits


def held_out_hits(scorer: Scorer, features: ImageFeatures, templates: Sequence[str]) -> list[bool]:
    """Whether each image gets its class, or one of its own captions if the data have no labels."""
    if features.examples.labelled:
        return scorer.score(features, templates).hits
    return caption_hits(scorer.student, features, scorer.world)


def held_out_accuracy(scorer: Scorer, features: ImageFeatures, templates: Sequence[str]) -> float:
    """Class accuracy, or caption accuracy if the data have no labels."""
    if features.examples.labelled:
        return scorer.score(features, templates).accuracy
    hits = caption_hits(scorer.student, features, scorer.world)
    return sum(hits) / len(hits)
