"""Ways of looking at the runs of a study for what a claim says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from studies.emojishift.compare import Measure, difference, value
from studies.emojishift.rows import Row
from tracer.core.metrics import Interval

FEWEST = 3  # runs of an arm, below which nothing is concluded
Arms = Mapping[str, Sequence[Row]]  # the test runs of each arm of one study, in the order of fold and seed


class Part(NamedTuple):
    """One comparison that a claim rests on: above zero it speaks for the claim, below zero against it."""

    label: str
    found: Interval
    percent: bool = True
    bootstrapped: bool = True  # otherwise the interval is the range over runs
    condition: bool = False  # what must hold besides, but proves nothing by itself

    @property
    def speaks(self) -> Literal["for", "against", "neither"]:
        return "for" if self.found.low > 0 else "against" if self.found.high < 0 else "neither"


Look = Callable[[Arms], list[Part]]


def better(measure: Measure, first: str, *others: str, other_alpha: float = 1.0) -> Look:
    """`first` is better than each of the others, which may be mixed with the pretrained model; less ECE is better."""

    def look(arms: Arms) -> list[Part]:
        mixed = "" if other_alpha == 1 else f" at α={other_alpha:g}"
        parts = []
        for other in others:
            found = difference(arms[first], arms[other], measure, 1.0, other_alpha)
            if measure.startswith("ece"):
                parts.append(Part(f"{measure}: {other}{mixed} − {first}", turned(found)))
            else:
                parts.append(Part(f"{measure}: {first} − {other}{mixed}", found))
        return parts

    return look


def no_worse(
    measure: Measure, first: str, second: str, margin: float = 0.01, *, condition: bool = True
) -> Look:
    """`first` is behind `second` by less than `margin`, interval included; a mere condition unless it is the claim."""

    def look(arms: Arms) -> list[Part]:
        low, value, high = difference(arms[first], arms[second], measure)
        room = Interval(margin + low, margin + value, margin + high)
        return [Part(f"{measure}: {margin:.0%} + {first} − {second}", room, condition=condition)]

    return look


def alike(measure: Measure, first: str, *others: str, margin: float = 0.01) -> Look:
    """`first` differs from each of the others by less than `margin`, interval included."""

    def look(arms: Arms) -> list[Part]:
        parts = []
        for other in others:
            low, value, high = difference(arms[first], arms[other], measure)
            nearest = max(low, -high, 0.0)  # the smallest difference that the interval allows
            room = Interval(margin - max(-low, high), margin - abs(value), margin - nearest)
            parts.append(Part(f"{measure}: {margin:.0%} − size of ({first} − {other})", room))
        return parts

    return look


def better_in_all(first: str, *others: str, other_alpha: float = 1.0) -> Look:
    """`first` is better than each of the others on the task, OOD and in retention."""
    measures: tuple[Measure, ...] = ("id", "ood", "retention")
    return all_of(*(better(measure, first, *others, other_alpha=other_alpha) for measure in measures))


def keeps_more(first: str, *others: str, measures: Sequence[Measure] = ("ood", "retention")) -> Look:
    """`first` is better than each of the others in what it keeps, on condition that it learns as much."""
    return all_of(
        *(no_worse("id", first, other) for other in others),
        *(better(measure, first, *others) for measure in measures),
    )


def at_equal_task(first: str, others: Sequence[str], *measures: Measure, margin: float = 0.02) -> Look:
    """`first` is better than that of the others which learns the task most nearly as well, if it is within `margin`."""

    def look(arms: Arms) -> list[Part]:
        task = {name: value(arms[name], "id").value for name in (first, *others)}
        nearest = min(others, key=lambda name: abs(task[name] - task[first]))
        apart = margin - abs(task[first] - task[nearest])
        told = f"id: {margin:.0%} − size of ({first} − {nearest}), over all runs"
        near = Part(told, Interval(apart, apart, apart), bootstrapped=False, condition=True)
        return [near, *(part for measure in measures for part in better(measure, first, nearest)(arms))]

    return look


def all_of(*looks: Look) -> Look:
    """What each of several looks finds, one after the other."""
    return lambda arms: [part for look in looks for part in look(arms)]


def lasting_gap(lasting: str, fading: str, floor: float = 0.1) -> Look:
    """One teacher ends with more than a tenth of its largest divergence from the student, the other with less."""

    def look(arms: Arms) -> list[Part]:
        kept = spread([left(row) - floor for row in arms[lasting]])
        lost = spread([floor - left(row) for row in arms[fading]])
        return [
            Part(f"KL at the end, of its peak: {lasting} − {floor:.0%}", kept, bootstrapped=False),
            Part(f"KL at the end, of its peak: {floor:.0%} − {fading}", lost, bootstrapped=False),
        ]

    return look


def left(row: Row) -> float:
    """How much of its widest gap a run has left in its last tenth."""
    gaps = np.array(row.gap["kl"])
    return float(gaps[-max(1, len(gaps) // 10) :].mean() / gaps.max())


def drifting_layers(direct: str, held: str) -> Look:
    """Direct finetuning changes the last block more than the first; a held student keeps more of the last."""

    def look(arms: Arms) -> list[Part]:
        ends = [(blocks(one), blocks(other)) for one, other in zip(arms[direct], arms[held], strict=True)]
        deeper = spread([one[0] - one[-1] for one, _ in ends])
        kept = spread([other[-1] - one[-1] for one, other in ends])
        return [
            Part(f"CKA under {direct}: first − last block", deeper, percent=False, bootstrapped=False),
            Part(f"CKA of the last block: {held} − {direct}", kept, percent=False, bootstrapped=False),
        ]

    return look


def blocks(row: Row) -> list[float]:
    """Similarity of each block with its pretrained self, from the first to the last."""
    return [cka for layer, cka in row.layers.items() if layer.startswith("block")]


def cheap(first: str, second: str, allowed: float) -> Look:
    """`first` takes at most `allowed` times as long as `second`."""

    def look(arms: Arms) -> list[Part]:
        pairs = [
            (one.cpu_seconds, other.cpu_seconds) for one, other in zip(arms[first], arms[second], strict=True)
        ]
        room = [allowed - one / other for one, other in pairs if one and other]
        unknown = Interval(-math.inf, math.nan, math.inf)  # a run that was gone on with has no time
        found = spread(room) if len(room) >= FEWEST else unknown
        return [Part(f"{allowed:g} − time of {first} / {second}", found, percent=False, bootstrapped=False)]

    return look


def spread(values: Sequence[float]) -> Interval:
    """Smallest, mean and largest over runs."""
    return Interval(min(values), float(np.mean(values)), max(values))


def turned(found: Interval) -> Interval:
    """The same interval of the opposite difference."""
    return Interval(-found.high, -found.value, -found.low)
