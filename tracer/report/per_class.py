"""Gain and loss of each class, and which classes are taken for which."""

from __future__ import annotations

from collections import Counter

import torch

from tracer.evaluation.verdict import Change
from tracer.report.paired import Paired
from tracer.report.scale import points, shown
from tracer.report.table import HtmlCell, HtmlColumn, HtmlTable, count_cell, interval_text, score_cell
from tracer.report.templates import cut

ENDS = 15  # most gained and most lost classes that are shown of many
LARGEST_MATRIX = 30  # classes
CONFUSIONS = 15
LONGEST = 60  # letters of a name


def class_table(data: Paired) -> HtmlTable:
    """Each class's accuracy before and after with the paired difference, from most gained to most lost."""
    changes = _changes(data)
    order = sorted(changes, key=lambda label: (-changes[label].difference.value, label))
    labels, part = order, ""
    if len(order) > 2 * ENDS:
        gained = [label for label in order if changes[label].difference.value > 0]
        lost = [label for label in order if changes[label].difference.value < 0]
        labels = [*gained[:ENDS], *lost[-ENDS:]]
        part = f"{len(gained)} of {len(order)} classes gained and {len(lost)} lost; at most {ENDS} of each are shown. "
    rows = tuple(_row(data.name_of(label), changes[label]) for label in labels)
    clear = sum(changes[label].clear for label in order)
    expected = (
        f"{clear} of {len(order)} differences are more than noise; by chance alone about 1 in 20 would be."
    )
    columns = (
        HtmlColumn("class", numeric=False),
        HtmlColumn("difference"),
        HtmlColumn("loss and gain", numeric=False, sortable=False),
        *map(HtmlColumn, ("before", "after", "images")),
    )
    caption = (
        f"{part}Differences are in points, paired by image, with their 95 % "
        f"interval in brackets; bold where it excludes zero. {expected}"
    )
    reach = max((abs(end) for label in labels for end in changes[label].difference), default=1.0)
    return HtmlTable(caption, columns, rows, title="Gain and loss by class", compact=True, reach=reach)


def confusion_table(data: Paired) -> HtmlTable | None:
    """The most frequent confusions of the result, with their number before; None if it makes no mistake."""
    before, after = _confusions(data, 0), _confusions(data, 1)
    totals = Counter(data.after.label.tolist())
    wrong = {pair: count for pair, count in after.items() if pair[0] != pair[1]}
    most = sorted(wrong, key=lambda pair: (-wrong[pair], pair))[:CONFUSIONS]
    rows = []
    for label, predicted in most:
        count, first, total = wrong[label, predicted], before[label, predicted], totals[label]
        change = HtmlCell(f"{count - first:+d}".replace("-", "−"), float(count - first))
        images = count_cell(count, f"of {total}, {shown(count / total, True)}")
        names = (_name(data.name_of(each)) for each in (label, predicted))
        rows.append((*names, images, count_cell(first), change))
    names = (HtmlColumn(name, numeric=False) for name in ("true class", "taken for"))
    columns = (*names, *map(HtmlColumn, ("images", "before", "change")))
    part = "All" if len(rows) == len(wrong) else f"The {len(rows)} most frequent"
    caption = (
        f"{part} confusions after training; {sum(wrong.values())} of {totals.total()} images are mistaken."
    )
    title = "Most frequent confusions"
    return HtmlTable(caption, columns, tuple(rows), title=title, compact=True) if rows else None


def matrix(data: Paired) -> list[list[int]] | None:
    """The confusion matrix of the result, a row per true class; None where there are too many classes to read it."""
    size = data.after.logits.shape[1]
    if size > LARGEST_MATRIX:
        return None
    counts = _confusions(data, 1)
    return [[counts[i, j] for j in range(size)] for i in range(size)]


def _changes(data: Paired) -> dict[int, Change]:
    members: dict[int, list[int]] = {}
    for row, label in enumerate(data.after.label.tolist()):
        members.setdefault(label, []).append(row)
    before, after = data.hits
    return {
        label: Change.of([before[row] for row in rows], [after[row] for row in rows])
        for label, rows in members.items()
    }


def _confusions(data: Paired, moment: int) -> Counter[tuple[int, int]]:
    """The number of images by true and predicted class."""
    predictions, hits = (data.before, data.after)[moment], data.hits[moment]
    predicted = torch.where(torch.tensor(hits), predictions.label, predictions.logits.argmax(dim=1))
    return Counter(zip(predictions.label.tolist(), predicted.tolist(), strict=True))


def _row(name: str, change: Change) -> tuple[HtmlCell, ...]:
    before, after, difference, n, _ = change
    ends = interval_text(difference, True)
    return (
        _name(name),
        HtmlCell(points(difference.value), difference.value, ends, best=change.clear),
        HtmlCell("", bar=difference),
        score_cell(before, True),
        score_cell(after, True),
        count_cell(n),
    )


def _name(name: str) -> HtmlCell:
    return HtmlCell(cut(name, LONGEST), name.lower()[:LONGEST])
