"""Metrics of a model on the test sets of a suite, with confidence intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from tracer.core.metrics import Interval, ece, metric_interval, sigmoid_ece, telling
from tracer.evaluation.predict import Scorer
from tracer.evaluation.retrieval import retrieve
from tracer.evaluation.suites.shift import Opened
from tracer.measure.answers import Answers, Estimate, Predictions

SCALED_ECE = replace(ece, name="scaled_ece")  # after temperature scaling


class Scored(NamedTuple):
    """The measures of one test set, and what was predicted if it has labels."""

    opened: Opened
    estimates: list[Estimate]
    predictions: Predictions | None

    @property
    def hits(self) -> list[bool]:
        """Whether each image is right; none without labels."""
        return [] if self.predictions is None else self.predictions.hits

    def answers(self, by: str, command: Mapping[str, Any]) -> Answers:
        """The same as answers of the weights `by`; `command` is kept for those who repeat it."""
        shift, examples, _ = self.opened
        return Answers(
            shift.name,
            shift.role,
            self.opened.key,
            by,
            estimates=tuple(self.estimates),
            classes=examples.classes,
            source={**shift.source, "command": dict(command)},
            predictions=self.predictions,
            hits=tuple(self.hits),
        )


def score_test_sets(
    scorer: Scorer, shifts: Iterable[Opened], temperature: float | None = None
) -> Iterator[Scored]:
    """Score test sets one by one.

    Labelled sets give all metrics, captioned sets give retrieval. With `temperature`, fitted on held-out data, sets
    with the classes of training also give the calibration error after temperature scaling. Zero-shot predictions of
    a model with a logit bias also give the calibration error of its sigmoid probabilities.
    """
    for opened in shifts:
        shift, examples, _ = opened
        estimates: list[Estimate] = []
        predictions: Predictions | None = None
        features = scorer.embed(examples)
        if examples.labelled:
            predictions = scorer.score(features, shift.templates, shift.classes)
            predictions = predictions._replace(logits=shift.project(predictions.logits))
            logits, label, _ = predictions
            measures = [(metric, logits) for metric in telling(logits.shape[1])]
            if scorer.by_sigmoid(shift.classes):
                measures.append((sigmoid_ece, logits))
            if temperature is not None and sorted(shift.classes) == sorted(scorer.trained_on):
                measures.append((SCALED_ECE, logits / temperature))
            by = ", by its trained head" if scorer.by_head(shift.classes) else ", by class names"
            for metric, scores in measures:
                interval = metric_interval(metric, scores, label)
                estimates.append(_estimate(opened, metric.name, interval, len(label), by))
        if examples.captioned:
            retrieval = retrieve(scorer.student, features, scorer.world)
            for name, interval in retrieval.recalls().items():
                way = name.partition("@")[0]
                estimates.append(_estimate(opened, name, interval, len(getattr(retrieval, way))))
        yield Scored(opened, estimates, predictions)


def _estimate(opened: Opened, metric: str, interval: Interval, n: int, by: str = "") -> Estimate:
    """A metric that depends on the order of images has no interval, and its value at both ends."""
    shift, _, partial = opened
    low, value, high = interval if interval.known else [interval.value] * 3
    return Estimate(shift.name, shift.role, metric, value, low, high, n, partial, f"{shift.rule}{by}")
