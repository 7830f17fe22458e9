"""Score a sweep over α and choose from it: the best on held-out data, or the largest α within a retention budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from tracer.core.errors import UserError
from tracer.core.metrics import counted_interval, optimism
from tracer.core.weights import Weights
from tracer.merging.evaluator import Evaluator, Scores

FEWEST = 50  # held-out images below which nothing is chosen by them


class Candidate(NamedTuple):
    """One α of a sweep, with the scores of its weights."""

    alpha: float
    scores: Scores


class Choice(NamedTuple):
    """The chosen candidate, why, and how much too high its accuracy is expected to be on the images that chose it."""

    candidate: Candidate
    why: str
    optimism: float = 0.0


def sweep(
    alphas: Sequence[float], merge: Callable[[float], Weights], evaluator: Evaluator
) -> Iterator[Candidate]:
    """The scores at every α."""
    for alpha in alphas:
        yield Candidate(alpha, evaluator(weights_at(alpha, merge, evaluator)))


def weights_at(alpha: float, merge: Callable[[float], Weights], evaluator: Evaluator) -> Weights:
    """The weights at α; between the ends, BatchNorm statistics are estimated anew."""
    return merge(alpha) if alpha in (0, 1) else evaluator.with_batchnorm_statistics(merge(alpha))


def best(candidates: Sequence[Candidate]) -> Choice:
    """The smallest |α| within one standard error of the highest held-out accuracy.

    Where the held-out images cannot tell any two candidates apart, or are too few, it is the candidate nearest to α =
    0.5, the choice of WiSE-FT without validation data. Standard errors are of paired differences.
    """
    order = sorted(candidates, key=lambda each: abs(each.alpha))
    hits, middle = torch.tensor([each.scores.hits for each in order]), _middle(order)
    if hits.shape[1] < FEWEST:
        return middle

    def choose(hits: Tensor) -> int:
        chosen = _nearest_to_the_best(hits)
        return order.index(middle.candidate) if chosen is None else chosen

    chosen, too_high = _nearest_to_the_best(hits), optimism(hits, choose)
    if chosen is None:
        return middle._replace(optimism=too_high)
    top, images = order[int(hits.sum(dim=1).argmax())], f"{hits.shape[1]} held-out images"
    if order[chosen] is top:
        return Choice(top, f"the best on {images}", too_high)
    why = f"within one standard error of the best (α = {top.alpha:g}) on {images}, and nearer to the start"
    return Choice(order[chosen], why, too_high)


def _nearest_to_the_best(hits: Bool[Tensor, "k n"]) -> int | None:
    """The first row within one standard error of the one with most hits; None if none is clearly worse than that."""
    top = hits[hits.sum(dim=1).argmax()]
    gained, lost = (hits & ~top).sum(dim=1).tolist(), (~hits & top).sum(dim=1).tolist()
    gaps = [counted_interval(up, down, hits.shape[1]) for up, down in zip(gained, lost, strict=True)]
    if not any(gap.excludes_zero for gap in gaps):
        return None
    return next(row for row, gap in enumerate(gaps) if -gap.value <= gap.standard_error)


def balanced(candidates: Sequence[Candidate]) -> Choice:
    """PAINT's choice: the highest mean of the accuracy on the task and the mean accuracy on retained data.

    On too few held-out images it is the middle, as in `best`.
    """
    order = sorted(candidates, key=lambda each: abs(each.alpha))
    hits = torch.tensor([each.scores.hits for each in order])
    if hits.shape[1] < FEWEST:
        return _middle(order)
    retained = torch.tensor([_retained(each.scores) for each in order])

    def choose(hits: Tensor) -> int:
        return int((hits.double().mean(dim=1) + retained).argmax())

    why = "the best mean of task and retained accuracy"
    return Choice(order[choose(hits)], why, optimism(hits, choose))


def _retained(scores: Scores) -> float:
    accuracies = scores.retained.values()
    return sum(accuracies) / len(accuracies) if accuracies else scores.agreement


def _middle(candidates: Sequence[Candidate]) -> Choice:
    """The candidate nearest to α = 0.5, where the held-out images cannot choose."""
    middle = min(candidates, key=lambda each: (abs(each.alpha - 0.5), abs(each.alpha)))
    images = f"{len(middle.scores.hits)} held-out images"
    return Choice(
        middle, f"{images} cannot tell these α apart, so the middle is taken (--held-out gives more data)"
    )


def check_keep(keep: float) -> None:
    """Raise UserError unless `keep` is a share."""
    if not 0 <= keep <= 1:
        raise UserError(f"--keep {keep} is a share of what the pretrained model could do, between 0 and 1")


def strongest(candidates: Sequence[Candidate], keep: float, before: Scores, images: str) -> Choice:
    """The largest α whose measured retention, relative to the pretrained model, is at least `keep`.

    The reason says what that is worth: its lower bound, and the largest α that is sure to keep as much. Raises
    UserError if no mixture keeps it: α = 0 always does, but is the pretrained model.
    """
    within = [each for each in candidates if each.scores.retention(before) >= keep]
    chosen = max(within, key=lambda each: each.alpha, default=None)
    if chosen is None or chosen.alpha == 0:
        mixtures = [each for each in candidates if each.alpha]
        most = max(mixtures, key=lambda each: each.scores.retention(before), default=None)
        closest = (
            "" if most is None else f": α = {most.alpha:g} keeps most, {most.scores.retention(before):.3f}"
        )
        raise UserError(
            f"no mixture of the sweep keeps {keep:g} of {images}{closest}. No weights are written; give a smaller "
            "--keep, --retain DATA with more images, or a sweep with smaller α"
        )
    measured, bound = chosen.scores.retention(before), chosen.scores.retention_bound(before)
    why = f"the strongest that keeps {keep:g} of {images}: {measured:.3f}, and with 95 % at least {bound:.3f}"
    if bound < keep:
        # From the start on until the first that is not sure: a fixed sequence of tests needs no correction.
        path = sorted(candidates, key=lambda each: abs(each.alpha))
        sure = list(takewhile(lambda each: each.scores.retention_bound(before) >= keep, path))
        highest = max((each.alpha for each in sure if each.alpha), default=None)
        none = "no α is sure to, for which --retain needs more images"
        why += f"; {none}" if highest is None else f"; α = {highest:g} is sure to"
    return Choice(chosen, why)
