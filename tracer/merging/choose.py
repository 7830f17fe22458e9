"""A sweep along α and the choice from it: the best on held-out data, or the strongest within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tracer.core.errors import UserError
from tracer.core.weights import Weights
from tracer.merging.judge import Judge, Verdict


class Candidate(NamedTuple):
    """A point of a sweep."""

    alpha: float
    verdict: Verdict


def sweep(alphas: Sequence[float], make: Callable[[float], Weights], judge: Judge) -> Iterator[Candidate]:
    """Every point judged; the ends are what they were, any other model settles first."""
    for alpha in alphas:
        yield Candidate(alpha, judge(at(alpha, make, judge)))


def at(alpha: float, make: Callable[[float], Weights], judge: Judge) -> Weights:
    """The weights at a point of the sweep."""
    return make(alpha) if alpha in (0, 1) else judge.settled(make(alpha))


def best(candidates: Sequence[Candidate]) -> Candidate:
    """The highest held-out accuracy; of equals the one nearest to the pretrained model."""
    return max(candidates, key=lambda each: (each.verdict.accuracy, -abs(each.alpha)))


def balanced(candidates: Sequence[Candidate]) -> Candidate:
    """PAINT's choice: the highest mean of the accuracy on the task and the mean accuracy on retained data."""

    def score(each: Candidate) -> tuple[float, float]:
        kept = each.verdict.retained.values()
        supported = sum(kept) / len(kept) if kept else each.verdict.agreement
        return (each.verdict.accuracy + supported) / 2, -abs(each.alpha)

    return max(candidates, key=score)


def strongest(candidates: Sequence[Candidate], keep: float, before: Verdict) -> Candidate:
    """The largest α that retains at least the share `keep` of what the pretrained model can do."""
    if not 0 <= keep <= 1:
        raise UserError(f"--keep {keep} is a share of what the pretrained model retains, between 0 and 1")
    within = [each for each in candidates if each.verdict.retention(before) >= keep]
    if not within:
        highest = max(each.verdict.retention(before) for each in candidates)
        raise UserError(f"no α of the sweep keeps {keep:g}: the most is {highest:.3f}; let it begin at 0")
    return max(within, key=lambda each: each.alpha)
