"""Score a sweep over α and choose from it: the best on held-out data, or the largest α within a retention budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tracer.core.errors import UserError
from tracer.core.metrics.intervals import paired_interval
from tracer.core.weights import Weights
from tracer.merging.evaluator import Evaluator, Scores

FEWEST = 50  # held-out images below which nothing is chosen by them


class Candidate(NamedTuple):
    """One α of a sweep, with the scores of its weights."""

    alpha: float
    scores: Scores


def sweep(
    alphas: Sequence[float], merge: Callable[[float], Weights], evaluator: Evaluator
) -> Iterator[Candidate]:
    """The scores at every α."""
    for alpha in alphas:
        yield Candidate(alpha, evaluator(weights_at(alpha, merge, evaluator)))


def weights_at(alpha: float, merge: Callable[[float], Weights], evaluator: Evaluator) -> Weights:
    """The weights at α; between the ends, BatchNorm statistics are estimated anew."""
    return merge(alpha) if alpha in (0, 1) else evaluator.with_batchnorm_statistics(merge(alpha))


def best(candidates: Sequence[Candidate]) -> tuple[Candidate, str]:
    """The smallest |α| within one standard error of the highest held-out accuracy, and why it was chosen.

    Where the held-out images cannot tell any two candidates apart, or are too few, it is the candidate nearest to α =
    0.5, the choice of WiSE-FT without validation data. Standard errors are of paired differences.
    """
    top = max(candidates, key=lambda each: (each.scores.accuracy, -abs(each.alpha)))
    gaps = {each.alpha: paired_interval(top.scores.hits, each.scores.hits) for each in candidates}
    images = f"{len(top.scores.hits)} held-out images"
    if len(top.scores.hits) < FEWEST or not any(gap.excludes_zero for gap in gaps.values()):
        return _middle(candidates)
    near = [each for each in candidates if -gaps[each.alpha].value <= gaps[each.alpha].standard_error]
    chosen = min(near, key=lambda each: (abs(each.alpha), -each.scores.accuracy))
    if chosen is top:
        return chosen, f"the best on {images}"
    return (
        chosen,
        f"within one standard error of the best (α = {top.alpha:g}) on {images}, and nearer to the start",
    )


def balanced(candidates: Sequence[Candidate]) -> tuple[Candidate, str]:
    """PAINT's choice and why: the highest mean of the accuracy on the task and the mean accuracy on retained data.

    On too few held-out images it is the middle, as in `best`.
    """
    if len(candidates[0].scores.hits) < FEWEST:
        return _middle(candidates)

    def score(each: Candidate) -> tuple[float, float]:
        accuracies = each.scores.retained.values()
        retained = sum(accuracies) / len(accuracies) if accuracies else each.scores.agreement
        return (each.scores.accuracy + retained) / 2, -abs(each.alpha)

    return max(candidates, key=score), "the best mean of task and retained accuracy"


def _middle(candidates: Sequence[Candidate]) -> tuple[Candidate, str]:
    """The candidate nearest to α = 0.5, and why no other was chosen."""
    middle = min(candidates, key=lambda each: (abs(each.alpha - 0.5), abs(each.alpha)))
    images = f"{len(middle.scores.hits)} held-out images"
    return middle, f"{images} cannot tell these α apart, so the middle is taken (--held-out gives more data)"


def check_keep(keep: float) -> None:
    """Raise UserError unless `keep` is a share."""
    if not 0 <= keep <= 1:
        raise UserError(f"--keep {keep} is a share of what the pretrained model could do, between 0 and 1")


def strongest(candidates: Sequence[Candidate], keep: float, before: Scores) -> Candidate:
    """The largest α whose retention relative to the pretrained model is at least `keep`."""
    within = [each for each in candidates if each.scores.retention(before) >= keep]
    if not within:
        highest = max(each.scores.retention(before) for each in candidates)
        raise UserError(f"no α of the sweep keeps {keep:g}: the most is {highest:.3f}; let it begin at 0")
    return max(within, key=lambda each: each.alpha)
