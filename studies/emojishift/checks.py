"""Comparisons between the arms of a study, from which the verdict on a claim is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from studies.emojishift.compare import difference, value
from studies.emojishift.rows import Measure, Row
from tracer.core.metrics import Interval

MIN_RUNS = 3  # runs an arm needs for any verdict
Arms = Mapping[str, Sequence[Row]]  # the test runs of each arm of a study, sorted by fold and seed


class Comparison(NamedTuple):
    """A quantity that is above zero if the claim is true, with its 95 % interval."""

    label: str
    interval: Interval
    percent: bool = True
    bootstrapped: bool = True  # else the interval is the range over runs
    condition: bool = False  # a precondition of the claim: must hold, but is no support

    @property
    def speaks(self) -> Literal["for", "against", "neither"]:
        return "for" if self.interval.low > 0 else "against" if self.interval.high < 0 else "neither"


Check = Callable[[Arms], list[Comparison]]  # the comparisons that a claim rests on


def better(measure: Measure, first: str, *others: str, other_alpha: float = 1.0) -> Check:
    """`first` is better than each of the others, taken at WiSE-FT's α = `other_alpha`; lower ECE is better."""

    def check(arms: Arms) -> list[Comparison]:
        mixed = "" if other_alpha == 1 else f" at α={other_alpha:g}"
        comparisons = []
        for other in others:
            gain = difference(arms[first], arms[other], measure, 1.0, other_alpha)
            if measure.startswith("ece"):
                comparisons.append(Comparison(f"{measure}: {other}{mixed} − {first}", negated(gain)))
            else:
                comparisons.append(Comparison(f"{measure}: {first} − {other}{mixed}", gain))
        return comparisons

    return check


def no_worse(
    measure: Measure, first: str, second: str, margin: float = 0.01, *, condition: bool = True
) -> Check:
    """`first` is behind `second` by less than `margin`, interval included."""

    def check(arms: Arms) -> list[Comparison]:
        low, value, high = difference(arms[first], arms[second], measure)
        room = Interval(margin + low, margin + value, margin + high)
        return [Comparison(f"{measure}: {margin:.0%} + {first} − {second}", room, condition=condition)]

    return check


def alike(measure: Measure, first: str, *others: str, margin: float = 0.01) -> Check:
    """`first` differs from each of the others by less than `margin`, interval included."""

    def check(arms: Arms) -> list[Comparison]:
        comparisons = []
        for other in others:
            low, value, high = difference(arms[first], arms[other], measure)
            nearest = max(low, -high, 0.0)  # the smallest difference that the interval allows
            room = Interval(margin - max(-low, high), margin - abs(value), margin - nearest)
            comparisons.append(Comparison(f"{measure}: {margin:.0%} − size of ({first} − {other})", room))
        return comparisons

    return check


def better_in_all(first: str, *others: str, other_alpha: float = 1.0) -> Check:
    """`first` is better than each of the others on the task, OOD and in retention."""
    measures: tuple[Measure, ...] = ("id", "ood", "retention")
    return all_of(*(better(measure, first, *others, other_alpha=other_alpha) for measure in measures))


def keeps_more(first: str, *others: str, measures: Sequence[Measure] = ("ood", "retention")) -> Check:
    """`first` is better than each of the others in `measures`, on condition that its task accuracy is no worse."""
    return all_of(
        *(no_worse("id", first, other) for other in others),
        *(better(measure, first, *others) for measure in measures),
    )


def at_equal_task(first: str, others: Sequence[str], *measures: Measure, margin: float = 0.02) -> Check:
    """`first` is better than the arm of nearest task accuracy, on condition that this is within `margin`."""

    def check(arms: Arms) -> list[Comparison]:
        task = {name: value(arms[name], "id").value for name in (first, *others)}
        nearest = min(others, key=lambda name: abs(task[name] - task[first]))
        slack = margin - abs(task[first] - task[nearest])
        label = f"id: {margin:.0%} − size of ({first} − {nearest}), over all runs"
        near = Comparison(label, Interval(slack, slack, slack), bootstrapped=False, condition=True)
        return [near, *(part for measure in measures for part in better(measure, first, nearest)(arms))]

    return check


def all_of(*checks: Check) -> Check:
    """The comparisons of several checks, one after the other."""
    return lambda arms: [comparison for check in checks for comparison in check(arms)]


def lasting_gap(lasting: str, fading: str, floor: float = 0.1) -> Check:
    """`lasting` ends with more than `floor` of its largest teacher–student KL, `fading` with less."""

    def check(arms: Arms) -> list[Comparison]:
        remaining = spread([remaining_gap(row) - floor for row in arms[lasting]])
        faded = spread([floor - remaining_gap(row) for row in arms[fading]])
        return [
            Comparison(f"KL at the end, of its peak: {lasting} − {floor:.0%}", remaining, bootstrapped=False),
            Comparison(f"KL at the end, of its peak: {floor:.0%} − {fading}", faded, bootstrapped=False),
        ]

    return check


def remaining_gap(row: Row) -> float:
    """The mean KL of teacher and student in the last tenth of a run, as a share of its maximum."""
    divergence = np.array(row.gap["kl"])
    return float(divergence[-max(1, len(divergence) // 10) :].mean() / divergence.max())


def drifting_layers(direct: str, held: str) -> Check:
    """Under `direct` the last block changes more than the first, and `held` changes the last block less."""

    def check(arms: Arms) -> list[Comparison]:
        ends = [(blocks(one), blocks(other)) for one, other in zip(arms[direct], arms[held], strict=True)]
        deeper = spread([one[0] - one[-1] for one, _ in ends])
        preserved = spread([other[-1] - one[-1] for one, other in ends])
        return [
            Comparison(f"CKA under {direct}: first − last block", deeper, percent=False, bootstrapped=False),
            Comparison(
                f"CKA of the last block: {held} − {direct}", preserved, percent=False, bootstrapped=False
            ),
        ]

    return check


def blocks(row: Row) -> list[float]:
    """CKA of each block with the same block of the pretrained model, from the first to the last."""
    return [cka for layer, cka in row.layers.items() if layer.startswith("block")]


def cheap(first: str, second: str, allowed: float) -> Check:
    """`first` takes at most `allowed` times the CPU time of `second`."""

    def check(arms: Arms) -> list[Comparison]:
        pairs = [
            (one.cpu_seconds, other.cpu_seconds) for one, other in zip(arms[first], arms[second], strict=True)
        ]
        room = [allowed - one / other for one, other in pairs if one and other]
        unknown = Interval(-math.inf, math.nan, math.inf)  # the time of a resumed run is not known
        interval = spread(room) if len(room) >= MIN_RUNS else unknown
        return [
            Comparison(
                f"{allowed:g} − time of {first} / {second}", interval, percent=False, bootstrapped=False
            )
        ]

    return check


def spread(values: Sequence[float]) -> Interval:
    """The mean, with the smallest and largest value as its interval."""
    return Interval(min(values), float(np.mean(values)), max(values))


def negated(interval: Interval) -> Interval:
    """The interval of the negative value."""
    return Interval(-interval.high, -interval.value, -interval.low)
