"""Metrics of a model on the test sets of a suite, with confidence intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tracer.core.metrics import METRICS, Interval, Metric, ece, metric_interval, sigmoid_ece
from tracer.evaluation.predict import Predictions, Scorer
from tracer.evaluation.retrieval import Retrieval, retrieve
from tracer.evaluation.suites import Opened

SCALED_ECE = replace(ece, name="scaled_ece")  # after temperature scaling


class Row(NamedTuple):
    """One metric on one test set."""

    shift: str
    role: str
    metric: str
    value: float
    low: float
    high: float
    n: int
    partial: bool
    rule: str


class Scored(NamedTuple):
    """The measures of one test set, and for labelled ones whether each image is right."""

    opened: Opened
    rows: list[Row]
    hits: list[bool]


def score_test_sets(
    scorer: Scorer, shifts: Iterable[Opened], keep: Path | None = None, temperature: float | None = None
) -> Iterator[Scored]:
    """Score test sets one by one; predictions are written to the folder `keep`, if given.

    Labelled sets give all metrics, captioned sets give retrieval. With `temperature`, fitted on held-out data, sets
    with the classes of training also give the calibration error after temperature scaling. Zero-shot predictions of
    a model with a logit bias also give the calibration error of its sigmoid probabilities.
    """
    for opened in shifts:
        scores: list[Row] = []
        hits: list[bool] = []
        features = scorer.embed(opened.examples)
        if opened.examples.labelled:
            predictions = scorer.score_shift(features, opened)
            if keep is not None:
                file = keep / f"{file_name(opened.shift.name)}.safetensors"
                predictions.write(file, opened.examples.classes)
            hits = predictions.hits
            by = "by its trained head" if scorer.by_head(opened.shift.classes) else "by class names"
            scores += rows(opened, predictions, METRICS, by)
            if scorer.by_sigmoid(opened.shift.classes):
                scores += rows(opened, predictions, {sigmoid_ece.name: sigmoid_ece}, by)
            if temperature is not None and opened.shift.classes == scorer.trained_on:
                scaled = predictions._replace(logits=predictions.logits / temperature)
                scores += rows(opened, scaled, {SCALED_ECE.name: SCALED_ECE}, by)
        if opened.examples.captioned:
            scores += recalls(opened, retrieve(scorer.student, features, scorer.world))
        yield Scored(opened, scores, hits)


def rows(
    opened: Opened, predictions: Predictions, metrics: Mapping[str, Metric[...]], by: str = ""
) -> list[Row]:
    """Metrics of these predictions with 95 % intervals; metrics that depend on the order of images have none.

    `by` is a note on how the classes were scored.
    """
    logits, label = predictions.logits, predictions.label
    scores = []
    for name, metric in metrics.items():
        interval = metric_interval(metric, logits, label)
        if not interval.known:
            interval = Interval(*[interval.value] * 3)
        scores.append(_row(opened, name, interval, len(label), by))
    return scores


def recalls(opened: Opened, retrieval: Retrieval) -> list[Row]:
    """Recall in both directions, at 1, 5 and 10."""
    return [
        _row(opened, name, interval, len(getattr(retrieval, name.partition("@")[0])))
        for name, interval in retrieval.recalls().items()
    ]


def _row(opened: Opened, metric: str, interval: Interval, n: int, by: str = "") -> Row:
    shift, _, partial = opened
    rule = f"{shift.rule}, {by}" if by else shift.rule
    return Row(shift.name, shift.role, metric, interval.value, interval.low, interval.high, n, partial, rule)


def file_name(name: str) -> str:
    """The name of a test set with characters replaced that a file name may not have."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
