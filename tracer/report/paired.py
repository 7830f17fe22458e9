"""Predictions of the pretrained model and of the result on the same images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from jaxtyping import Float
from torch import Tensor

from tracer.evaluation.verdict import MIN_IMAGES, Change, plus_minus
from tracer.measure.answers import Answers, Predictions, Role
from tracer.report.run_data import RunData
from tracer.report.scale import points
from tracer.report.scored import with_tensors


@dataclass(frozen=True, eq=False)
class Paired:
    """Predictions on one data set, before and after; `source` says where its images are found again."""

    name: str
    role: Role
    classes: tuple[str, ...]
    before: Predictions
    after: Predictions
    source: Mapping[str, Any] = field(default_factory=dict)

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
        return "Held-out images" if self.role == "task" else self.name

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
    for after in sorted(run.answers["after"], key=lambda each: each.role != "task"):
        before = next((each for each in run.answers["before"] if _same(each, after)), None)
        if before is None:
            continue
        pair = with_tensors(run.folder, "before", before), with_tensors(run.folder, "after", after)
        first, second = (None if each is None else each.predictions for each in pair)
        if first is not None and second is not None and list(first.ids) == list(second.ids):
            yield Paired(run.shown(after), after.role, after.classes, first, second, after.source)


def _same(before: Answers, after: Answers) -> bool:
    """Whether both models were asked the same, with labels that count the same classes."""
    asked = [(each.name, each.role, each.key, each.classes) for each in (before, after)]
    return asked[0] == asked[1]
