"""A model on a suite: predictions kept, then rows of numbers with their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tracer.core.metrics import METRICS, Interval, Metric, bootstrap, ece
from tracer.evaluation.predict import Predictions, Scorer
from tracer.evaluation.retrieval import Retrieval, retrieve
from tracer.evaluation.suites import Opened

SCALED_ECE = ece.fixed("scaled_ece")  # after temperature scaling


class Row(NamedTuple):
    """One measure of one test set."""

    shift: str
    role: str
    metric: str
    value: float
    low: float
    high: float
    n: int
    partial: bool
    rule: str


def assess(
    scorer: Scorer, shifts: Iterable[Opened], keep: Path | None = None, temperature: float | None = None
) -> Iterator[tuple[Opened, list[Row]]]:
    """Score one test set after the other; with `keep`, their predictions are written there.

    Labels give every metric, captions give retrieval. `temperature`, fitted on held-out data of the scorer's own
    classes, gives the calibration that it would have on these.
    """
    for opened in shifts:
        made: list[Row] = []
        seen = scorer.embed(opened.examples)
        if opened.examples.labelled:
            found = scorer.score_shift(seen, opened)
            if keep is not None:
                found.write(keep / f"{file_name(opened.shift.name)}.safetensors")
            by = "by its trained head" if scorer.by_head(opened.shift.classes) else "by class names"
            made += rows(opened, found, METRICS, by)
            if temperature is not None and opened.shift.classes == scorer.trained_on:
                scaled = found._replace(logits=found.logits / temperature)
                made += rows(opened, scaled, {SCALED_ECE.name: SCALED_ECE}, by)
        if opened.examples.captioned:
            made += recalls(opened, retrieve(scorer.student, seen, scorer.world))
        yield opened, made


def rows(opened: Opened, found: Predictions, metrics: Mapping[str, Metric[...]], by: str = "") -> list[Row]:
    """Metrics of these predictions, each with a 95 % bootstrap interval where its order does not matter.

    `by` says what scored the classes.
    """
    made = []
    for name, metric in metrics.items():
        if metric.ordered:
            value = low = high = metric(found.logits, found.label)
        else:
            low, value, high = bootstrap(metric, found.logits, found.label)
        made.append(_row(opened, name, Interval(low, value, high), len(found.label), by))
    return made


def recalls(opened: Opened, found: Retrieval) -> list[Row]:
    """Recall both ways, at every depth."""
    return [
        _row(opened, name, share, len(getattr(found, name.partition("@")[0])))
        for name, share in found.recalls().items()
    ]


def _row(opened: Opened, metric: str, found: Interval, n: int, by: str = "") -> Row:
    shift, _, partial = opened
    rule = f"{shift.rule}, {by}" if by else shift.rule
    return Row(shift.name, shift.role, metric, found.value, found.low, found.high, n, partial, rule)


def file_name(name: str) -> str:
    """A test set's name as the name of its file of predictions."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
