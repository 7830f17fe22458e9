"""Metrics of a model on the test sets of a suite, with confidence intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tracer.core.metrics import Interval, ece, metric_interval, sigmoid_ece, telling
from tracer.evaluation.predict import Scorer
from tracer.evaluation.retrieval import retrieve
from tracer.evaluation.suites.shift import Opened

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
        shift, examples, _ = opened
        rows: list[Row] = []
        hits: list[bool] = []
        features = scorer.embed(examples)
        if examples.labelled:
            predictions = scorer.score(features, shift.templates, shift.classes)
            predictions = predictions._replace(logits=shift.project(predictions.logits))
            if keep is not None:
                predictions.write(keep / f"{file_name(shift.name)}.safetensors", examples.classes)
            logits, label, _ = predictions
            hits = predictions.hits
            measures = [(metric, logits) for metric in telling(logits.shape[1])]
            if scorer.by_sigmoid(shift.classes):
                measures.append((sigmoid_ece, logits))
            if temperature is not None and sorted(shift.classes) == sorted(scorer.trained_on):
                measures.append((SCALED_ECE, logits / temperature))
            by = ", by its trained head" if scorer.by_head(shift.classes) else ", by class names"
            for metric, scores in measures:
                interval = metric_interval(metric, scores, label)
                rows.append(_row(opened, metric.name, interval, len(label), by))
        if examples.captioned:
            retrieval = retrieve(scorer.student, features, scorer.world)
            for name, interval in retrieval.recalls().items():
                way = name.partition("@")[0]
                rows.append(_row(opened, name, interval, len(getattr(retrieval, way))))
        yield Scored(opened, rows, hits)


def _row(opened: Opened, metric: str, interval: Interval, n: int, by: str = "") -> Row:
    """A row; a metric that depends on the order of images has no interval, and its value at both ends."""
    shift, _, partial = opened
    low, value, high = interval if interval.known else [interval.value] * 3
    return Row(shift.name, shift.role, metric, value, low, high, n, partial, f"{shift.rule}{by}")


def file_name(name: str) -> str:
    """The name of a test set with characters replaced that a file name may not have."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
