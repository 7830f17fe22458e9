"""Predictions of the pretrained model and of the result on the same images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from torch import Tensor

from tracer.evaluation.predict import Predictions
from tracer.evaluation.score import file_name
from tracer.evaluation.summary import HELD_OUT
from tracer.evaluation.verdict import MIN_IMAGES, Change, plus_minus
from tracer.report.run_data import RunData
from tracer.report.scale import points
from tracer.report.scored import WEIGHTS, eval_flags, predictions


@dataclass(frozen=True, eq=False)
class Paired:
    """Predictions on one data set, before and after; `flags` are those of `tracer eval` that named it."""

    name: str
    role: str  # id, ood or retain; "" for the held-out set of training
    classes: tuple[str, ...]
    before: Predictions
    after: Predictions
    flags: tuple[str, ...] = ()

    @cached_property
    def hits(self) -> tuple[list[bool], list[bool]]:
        """Whether each image was right, before and after."""
        return self.before.hits, self.after.hits

    @cached_property
    def change(self) -> Change:
        return Change.of(*self.hits)

    @property
    def title(self) -> str:
        """The heading of the data set: its name, or that it is the held-out one."""
        return self.name if self.role else "Held-out images"

    @property
    def levels(self) -> str:
        """Accuracy before and after with the paired difference, which few images cannot tell: as in the headline."""
        before, after, difference, n, _ = self.change
        levels = f"{plus_minus(before)} → {plus_minus(after)} of {n} images"
        if n < MIN_IMAGES:
            return f"{levels}, too few to tell."
        noise = "more than noise" if self.change.clear else "within noise"
        return f"{levels}: {points(difference.value)} ± {100 * difference.half_width:.1f} points, {noise}."

    @cached_property
    def shares(self) -> tuple[Float[Tensor, "n k"], Float[Tensor, "n k"]]:
        """The probability of each class, before and after."""
        before, after = (each.logits.float().softmax(dim=1) for each in (self.before, self.after))
        return before, after

    def name_of(self, label: int) -> str:
        return self.classes[label] if label < len(self.classes) else f"class {label}"


def paired_sets(run: RunData) -> Iterator[Paired]:
    """Every data set with readable predictions of both models: the held-out set, then those of `tracer eval`."""
    sets = {row["shift"]: row for row in run.scored["after"]}
    if HELD_OUT not in map(file_name, sets):  # else a test set of this name has replaced the file
        yield from _read(run, HELD_OUT, "", ())
    for name, row in sets.items():
        yield from _read(run, name, row["role"], eval_flags(row))


def _read(run: RunData, name: str, role: str, flags: tuple[str, ...]) -> Iterator[Paired]:
    """The data set if both models have predictions of the same images, else nothing."""
    files = [predictions(run.folder, moment) / f"{file_name(name)}.safetensors" for moment in WEIGHTS]
    try:
        before, after = map(Predictions.read, files)
        classes = tuple(map(str, Predictions.classes(files[1])))
    except (SafetensorError, OSError, KeyError, ValueError):
        return
    same = before.logits.shape == after.logits.shape and torch.equal(before.label, after.label)
    if not same or list(before.ids) != list(after.ids) or not _valid(before) or not _valid(after):
        return
    if not classes and role != "retain" and after.logits.shape[1] == len(run.classes):
        classes = run.classes  # files of older versions have no class names
    yield Paired(name, role, classes, before, after, flags)


def _valid(predicted: Predictions) -> bool:
    """Whether shapes, labels and logits are those of a classifier."""
    logits, label, ids = predicted
    if logits.ndim != 2 or label.ndim != 1 or not 0 < len(logits) == len(label) == len(ids):
        return False
    inside = bool(((label >= 0) & (label < logits.shape[1])).all())
    return inside and logits.is_floating_point() and bool(torch.isfinite(logits).all())
