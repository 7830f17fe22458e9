"""The one number shown while training."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.data.examples import Examples
from tracer.evaluate import Scorer
from tracer.retrieval import caption_accuracy


def held_out_accuracy(scorer: Scorer, examples: Examples, templates: Sequence[str]) -> float:
    """Class accuracy, or caption accuracy where there are no classes."""
    if examples.labelled:
        return scorer.predict(examples, templates).accuracy
    return caption_accuracy(scorer.student, examples, scorer.world)
