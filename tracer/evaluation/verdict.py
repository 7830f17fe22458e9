"""What a run gained and lost, with intervals and counts, in one sentence that a person can act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tracer.core.metrics.intervals import Interval, counted_interval, paired_interval, wilson_interval

COLLAPSED = 0.5  # retention below this share of what the pretrained model could do is a collapse
MIN_IMAGES = 30  # below this, a difference is not reported
INTERVALS = ("before", "after", "difference")  # of a change


class Change(NamedTuple):
    """The accuracy of two models on the same images, and its paired difference."""

    before: Interval
    after: Interval
    difference: Interval
    n: int
    luck: float = 0.0  # taken off `after` and the difference, where these images chose the weights

    @classmethod
    def of(cls, before: Sequence[bool], after: Sequence[bool]) -> Change:
        """The change between two lists of hits and misses."""
        n = len(before)
        first, second = (wilson_interval(sum(hits) / n if n else 0.0, n) for hits in (before, after))
        return cls(first, second, paired_interval(before, after), n)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Change:
        """The change that `to_json` wrote."""
        intervals = (Interval(*value[name]) for name in INTERVALS)
        return cls(*intervals, n=value["n"])

    def to_json(self) -> dict[str, Any]:
        """Lists [low, value, high], and the number of images."""
        return {**{name: list(getattr(self, name)) for name in INTERVALS}, "n": self.n}

    @property
    def clear(self) -> bool:
        """Whether the difference is more than noise."""
        return self.difference.excludes_zero

    @property
    def none(self) -> bool:
        """Whether no image was gained and none was lost."""
        return self.difference == counted_interval(0, 0, self.n)

    @property
    def collapsed(self) -> bool:
        """Whether clearly less than half of the accuracy before is left."""
        return self.clear and self.after.value < COLLAPSED * self.before.value


class Verdict(NamedTuple):
    """The change on the task, and on each data set that should be retained."""

    task: Change
    retained: dict[str, Change]
    name: str = "task"  # or that of other images, where these are not the task that was trained

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Verdict:
        """The verdict that `to_json` wrote."""
        retained = {name: Change.from_json(each) for name, each in value["retain"].items()}
        return cls(Change.from_json(value["task"]), retained)

    def to_json(self) -> dict[str, Any]:
        """The changes, as in `result.json`."""
        retained = {name: change.to_json() for name, change in self.retained.items()}
        return {"task": self.task.to_json(), "retain": retained}

    @property
    def bad(self) -> bool:
        """Whether the task got clearly worse, or what the model could do collapsed."""
        return (self.task.clear and self.task.difference.value < 0) or any(
            change.collapsed for change in self.retained.values()
        )

    @property
    def no_gain(self) -> bool:
        """Whether the task did not improve beyond noise."""
        return not (self.task.clear and self.task.difference.value > 0)

    def sentence(self, images: str = "held-out images") -> str:
        """What was gained and lost, on how many images, and whether that is more than noise; bad news first."""
        parts = [_part(self.name, self.task, images)]
        for name, change in self.retained.items():
            part = _part(name, change, "images")
            parts = [part, *parts] if change.collapsed else [*parts, part]
        sentence = "; ".join(parts)
        return f"{sentence[0].upper()}{sentence[1:]}."


def verdict(result: Mapping[str, Any]) -> Verdict | None:
    """The verdict of a `result.json`; None for one of version 0.1, which has no counts."""
    changes = result.get("changes")
    return Verdict.from_json(changes) if changes else None


def names_kept(result: Mapping[str, Any]) -> Interval | None:
    """The share of held-out images to which both models give the same of ImageNet's names, of a `result.json`.

    None where it means nothing, or where retention was measured on data for it. Earlier versions measured it always.
    """
    retention = result.get("retention") or {}
    if not retention.get("meaningful", True) or "interval" not in retention:
        return None
    return Interval(*retention["interval"])


def plus_minus(interval: Interval) -> str:
    """A share with half of its interval: 68.0 ± 5.3 %; with both bounds where that would leave 0 to 100 %."""
    if interval.value - interval.half_width >= 0 and interval.value + interval.half_width <= 1:
        return f"{100 * interval.value:.1f} ± {100 * interval.half_width:.1f} %"
    return f"{100 * interval.value:.1f} [{100 * interval.low:.1f}, {100 * interval.high:.1f}] %"


def value_with_interval(value: float, interval: Sequence[float] | None) -> str:
    """A value that is no share, with half of its interval if that is known: 0.123 ± 0.045."""
    return f"{value:.3f}" if interval is None else f"{value:.3f} ± {Interval(*interval).half_width:.3f}"


def _part(name: str, change: Change, images: str) -> str:
    points, half = 100 * change.difference.value, 100 * change.difference.half_width
    measured = change.after.value + change.luck
    levels = f"{100 * change.before.value:.1f} → {100 * measured:.1f} % of {change.n} {images}"
    if f"{100 * change.luck:.1f}" != "0.0":
        levels += f", {100 * change.after.value:.1f} % less the luck of the choice"
    if not change.n:
        ends = f"{100 * change.before.value:.1f} % → {100 * change.after.value:.1f} %"
        return f"{name}: {ends}, on an unknown number of images"
    if change.n < MIN_IMAGES:
        return f"{name}: {levels}, too few to tell"
    if change.none:
        return f"{name} unchanged: no image gained or lost ({levels})"
    if not change.clear:
        return f"{name} within noise: {points:+.1f} ± {half:.1f} points ({levels})"
    word = "collapsed by" if change.collapsed else "gained" if points > 0 else "lost"
    return f"{name} {word} {abs(points):.1f} ± {half:.1f} points ({levels})"
