"""What is tried: methods with a strength, in the order in which our evidence recommends them, and learning rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tracer.methods.base import method
from tracer.methods.catalogue import cost
from tracer.runs.experiment import Experiment

RATES = (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
TEN = 2  # places of RATES
FIRST_RATE = 1e-5  # where direct finetuning begins to climb
# Rates of the other methods, in places of RATES from that where direct finetuning collapses, and their names.
OFFSETS = (-1, -2, 0, -3, 1)
NAMES = {
    -3: "a thirtieth of that rate",
    -2: "a tenth of that rate",
    -1: "a third of that rate",
    0: "that rate",
    1: "three times that rate",
    2: "ten times that rate",
    3: "thirty times that rate",
}
ADAPTER_OFFSET = TEN  # an adapter's rate is higher
WITHOUT_RATE = ("zeroshot", "lp")  # the pretrained model, and a linear probe whose head is solved for
COLLAPSED = 0.5  # of what was known; a rate at which less is kept is past the cliff


@dataclass(frozen=True)
class Candidate:
    """A method with its options, at a learning rate, that trains all weights or an adapter."""

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    lr: float = FIRST_RATE
    adapter: str | None = None

    @property
    def label(self) -> str:
        """Its method, adapter and strength in words; options that do not vary between candidates are left out."""
        title = method(self.method).title + (" with LoRA" if self.adapter else "")
        numbers = {name: value for name, value in self.options.items() if isinstance(value, float)}
        options = ", ".join(f"{name} {value:g}" for name, value in numbers.items())
        return f"{title} ({options})" if options else title

    def __str__(self) -> str:
        return f"{self.label} at {self.lr:g}" if self.has_rate else self.label

    @property
    def has_rate(self) -> bool:
        """Whether a learning rate and a number of steps change it."""
        return self.method not in WITHOUT_RATE

    @property
    def key(self) -> str:
        """What it is, however many steps it has."""
        return repr(self)

    @property
    def cost(self) -> float:
        """Time of a step relative to direct finetuning; one more forward pass is about a third. 0 without steps."""
        if not self.has_rate:
            return 0.0
        return 1 + len(cost(method(self.method, **self.options)).forwards) / 3

    def experiment(self, base: Experiment, steps: int) -> Experiment:
        """The run of this candidate with `steps` steps."""
        return replace(
            base,
            method=self.method,
            options=dict(self.options),
            lr=self.lr,
            adapter=self.adapter or base.adapter,
            steps=steps,
            epochs=None,
        )


# In the order of docs/emojishift.md and of the first trial on large towers: what keeps most at equal accuracy first.
LABELLED = (
    Candidate("lipsum"),
    Candidate("lpft", {"solver": "lbfgs", "unit": True}),
    Candidate("ema_sd", {"horizon": 0.05, "strength": 10.0}),
    Candidate("tracer"),
    Candidate("static_sd"),
    Candidate("tracer", adapter="lora"),
    Candidate("tracer", {"strength": 10.0}),
    Candidate("l2sp", {"strength": 1.0}),
    Candidate("static_sd", {"strength": 10.0}),
)
CAPTIONED = tuple(
    replace(each, options={**each.options, "loss": "contrastive"}) if each.method == "l2sp" else each
    for each in LABELLED
    if each.method not in ("lipsum", "lpft")  # which need labels
)


def kinds(labelled: bool) -> tuple[Candidate, ...]:
    """The methods with a strength that the ladder has at each rate."""
    return LABELLED if labelled else CAPTIONED


def direct(labelled: bool) -> Candidate:
    """Direct finetuning, whose rates are climbed first: with a head, or contrastive where there are only captions."""
    return Candidate("ft" if labelled else "flyp")


def preview(labelled: bool, count: int) -> Iterator[tuple[str, str]]:
    """Direct finetuning and the first `count` of the ladder, with their rates relative to where it collapses."""
    yield direct(labelled).label, f"{FIRST_RATE:g} and higher, up to the rate at which it forgets most"
    steps = [(offset, each) for offset in OFFSETS for each in kinds(labelled)]
    for offset, each in steps[:count]:
        yield each.label, NAMES[offset + ADAPTER_OFFSET if each.adapter else offset]


def without_rate(labelled: bool) -> tuple[Candidate, ...]:
    """Candidates without a learning rate: the pretrained model, and a linear probe on its features."""
    probe = (Candidate("lp", {"solver": "lbfgs", "unit": True}),) if labelled else ()
    return (Candidate("zeroshot"), *probe)


def climb(tried: Mapping[float, float]) -> float | None:
    """The next rate for direct finetuning, given what each rate that was tried kept; None at the end.

    From FIRST_RATE in tens, up until a rate collapses or down until one does not; then once between the two.
    """
    if not tried:
        return FIRST_RATE
    past = [RATES.index(rate) for rate, kept in tried.items() if kept < COLLAPSED]
    before = [RATES.index(rate) for rate, kept in tried.items() if kept >= COLLAPSED]
    if not past:
        place = min(max(before) + TEN, len(RATES) - 1)
    elif not before:
        place = max(min(past) - TEN, 0)
    else:
        place = (max(before) + min(past)) // 2
    return None if place in (*past, *before) else RATES[place]


def ladder(labelled: bool, collapse: float) -> tuple[Candidate, ...]:
    """The other methods at rates around the one where direct finetuning collapses, the most promising first."""
    place = RATES.index(collapse)
    places = [place + offset for offset in OFFSETS if 0 <= place + offset < len(RATES)]
    return tuple(replace(each, lr=_rate(each, place)) for place in places for each in kinds(labelled))


def most(labelled: bool) -> int:
    """Candidates with a rate that a search can try at most."""
    return len(ladder(labelled, FIRST_RATE)) + len(RATES) - RATES.index(FIRST_RATE)


def _rate(candidate: Candidate, place: int) -> float:
    return RATES[min(place + ADAPTER_OFFSET, len(RATES) - 1) if candidate.adapter else place]


def cliff(tried: Mapping[float, float]) -> float:
    """The lowest rate at which direct finetuning collapsed; if none did, the one above the highest that was tried."""
    if past := [rate for rate, kept in tried.items() if kept < COLLAPSED]:
        return min(past)
    place = RATES.index(max(tried)) + 1
    return RATES[min(place, len(RATES) - 1)]
