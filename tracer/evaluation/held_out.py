"""Hits and misses on the held-out set, and the part of it that is scored in training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from tracer.data.examples import Examples
from tracer.evaluation.predict import ImageFeatures, Scorer
from tracer.evaluation.retrieval import caption_hits

SEEN_FOR_EACH = 25  # images trained on for each image of an evaluation in training
FEWEST = 64


def watched(held_out: Examples, images_seen: int) -> Int[np.ndarray, " n"]:
    """Indices of the images to watch a run of `images_seen` images by, so that short runs do not spend it on that.

    Without labels these are all: accuracy among captions depends on how many there are.
    """
    most = max(FEWEST, images_seen // SEEN_FOR_EACH) if held_out.labelled else len(held_out)
    return evenly_spaced(len(held_out), most)


def evenly_spaced(count: int, most: int) -> Int[np.ndarray, " n"]:
    """Indices of all of `count` examples, or of `most` that are evenly spaced (data may be sorted by class)."""
    taken = min(count, most)
    return np.arange(taken) * count // max(1, taken)


def held_out_hits(scorer: Scorer, features: ImageFeatures, templates: Sequence[str]) -> list[bool]:
    """Whether each image gets its class, or one of its own captions if the data have no labels."""
    if features.examples.labelled:
        return scorer.score(features, templates).hits
    return caption_hits(scorer.student, features, scorer.world)


def held_out_accuracy(scorer: Scorer, features: ImageFeatures, templates: Sequence[str]) -> float:
    """Class accuracy, or caption accuracy if the data have no labels."""
    hits = held_out_hits(scorer, features, templates)
    return sum(hits) / len(hits)
