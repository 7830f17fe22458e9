"""The one number shown while training."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.evaluation.predict import Scorer, Seen
from tracer.evaluation.retrieval import caption_accuracy


def held_out_accuracy(scorer: Scorer, seen: Seen, templates: Sequence[str]) -> float:
    """Class accuracy, or caption accuracy where there are no classes."""
    if seen.examples.labelled:
        return scorer.score(seen, templates).accuracy
    return caption_accuracy(scorer.student, seen, scorer.world)
