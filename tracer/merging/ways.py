"""The ways to merge, each from a family of runs to one set of weights and the story of how it came about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from tracer.core.batch import Batch
from tracer.core.errors import UserError
from tracer.core.model_stock import By, stock
from tracer.core.projection import Norm
from tracer.core.weights import Weights
from tracer.data.loader import Batches
from tracer.data.transforms import Transform
from tracer.merging import choose
from tracer.merging.choose import Candidate
from tracer.merging.family import Family
from tracer.merging.fisher import fisher, information
from tracer.merging.judge import Judge, Verdict
from tracer.merging.soup import greedy, uniform
from tracer.merging.tpgm import tpgm
from tracer.merging.wise import image_tower, interpolate
from tracer.models.prompts import render


@dataclass(frozen=True)
class Merged:
    """The weights that were kept, under a name, and what was seen on the way."""

    name: str
    weights: Weights
    verdict: Verdict
    notes: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)


def along(
    family: Family, judge: Judge, alphas: Sequence[float], how: str = "wise", keep: float | None = None
) -> Merged:
    """A sweep between start and end: "wise" over everything, "paint" over the image tower, "fisher" weighted."""
    (end,) = only(family, how)
    make = _line(family, judge, end, how)
    candidates = tuple(choose.sweep(alphas, make, judge))
    if keep is not None:
        chosen, why = choose.strongest(candidates, keep, judge.before), f"the strongest that keeps {keep:g}"
    elif len(candidates) == 1:
        chosen, why = candidates[0], "as asked"
    elif how == "paint":
        chosen, why = choose.balanced(candidates), "the best mean of task and retained accuracy"
    else:
        chosen, why = choose.best(candidates), "the best on held-out data"
    weights = choose.at(chosen.alpha, make, judge)
    note = f"α = {chosen.alpha:g}: {why}"
    return Merged(
        f"{how}-{chosen.alpha:g}", weights, chosen.verdict, (note,), candidates, {"alpha": chosen.alpha}
    )


def soup(family: Family, judge: Judge, kind: str) -> Merged:
    """The mean of all runs, or of those that help."""
    if kind == "uniform":
        weights = judge.settled(uniform(list(family.ends.values())))
        note = f"the mean of {len(family.ends)} runs"
        return Merged("soup-uniform", weights, judge(weights), (note,))
    if kind != "greedy":
        raise UserError(f"a soup is uniform or greedy, not {kind!r}")
    found = greedy(family.ends, lambda weights: judge(judge.settled(weights)).accuracy)
    weights = found.weights if len(found.members) == 1 else judge.settled(found.weights)
    return Merged(
        "soup-greedy", weights, judge(weights), found.story, details={"members": list(found.members)}
    )


def stocked(family: Family, judge: Judge, by: By) -> Merged:
    """Model Stock over all runs, with the angle of every tensor that moved."""
    merged, cosines = stock(family.start, list(family.ends.values()), by)
    moved = {
        name: cos
        for name, cos in cosines.items()
        if any(_moved(family, end, name) for end in family.ends.values())
    }
    angles = {name: float(torch.rad2deg(torch.acos(torch.tensor(cos)))) for name, cos in moved.items()}
    weights = judge.settled(merged)
    return Merged(f"stock-{by}", weights, judge(weights), _spread(angles), details={"angles": angles})


def radii(family: Family, judge: Judge, norm: Norm, steps: int, seed: int = 0) -> Merged:
    """TPGM: the run's weights drawn back to radii learned on the held-out data."""
    (end,) = only(family, "tpgm")
    student = judge.scorer(end).student
    weights, found = tpgm(family.start, end, student, _batches(family, judge, steps, seed), norm)
    weights = judge.settled({name: tensor.detach() for name, tensor in weights.items()})
    shares = {name: float(radius) / found.farthest[name] for name, radius in found.radius.items()}
    middle = sorted(shares.values())[len(shares) // 2] if shares else 1.0
    note = f"{len(shares)} radii; half of the tensors keep less than {middle:.1%} of their farthest row's way"
    return Merged("tpgm", weights, judge(weights), (note,), details={"kept_share": shares})


def only(family: Family, how: str) -> tuple[Weights]:
    """The weights of the one run that `how` works on."""
    if len(family.ends) != 1:
        raise UserError(
            f"{how} merges one run with its pretrained model, and {len(family.ends)} runs are given"
        )
    (end,) = family.ends.values()
    return (end,)


def _line(family: Family, judge: Judge, end: Weights, how: str) -> Callable[[float], Weights]:
    if how == "wise":
        return lambda alpha: interpolate(family.start, end, alpha)
    if how == "paint":
        return lambda alpha: interpolate(family.start, end, alpha, image_tower)
    known, learned = (_information(family, judge, weights) for weights in (family.start, end))
    return partial(_fisher, family.start, end, known, learned)


def _fisher(start: Weights, end: Weights, known: Weights, learned: Weights, alpha: float) -> Weights:
    return fisher(start, end, alpha, known, learned)


def _information(family: Family, judge: Judge, weights: Weights, count: int = 256) -> Weights:
    _labelled(family, judge, "fisher")
    student, world = judge.scorer(weights).student, judge.world
    some = range(min(count, len(judge.held_out)))
    images = Transform(student.preprocess).batch(judge.held_out.images, some).to(world.device)
    found = information(student, images, _prompts(family).to(world.device))
    return {name: tensor.cpu() for name, tensor in found.items()}


def _batches(family: Family, judge: Judge, steps: int, seed: int) -> Iterator[Batch]:
    """Held-out images with their labels, and one prompt a class."""
    _labelled(family, judge, "tpgm")
    transform, prompts = Transform(family.student.preprocess), _prompts(family)
    size = min(64, len(judge.held_out))
    batches = Batches(judge.held_out, batch=size, seed=seed, transform=transform)
    for step in range(steps):
        yield judge.world.to_device(batches[step]._replace(text=prompts))


def _prompts(family: Family) -> torch.Tensor:
    plan = family.plan
    return family.student.tokeniser([render(plan.templates[0], name) for name in plan.train.classes])


def _labelled(family: Family, judge: Judge, how: str) -> None:
    if not judge.held_out.labelled:
        raise UserError(
            f"{how} needs labels, and {judge.held_out.name}, held out by {family.runs[0].folder}, has none"
        )


def _moved(family: Family, end: Weights, name: str) -> bool:
    return not torch.equal(family.start[name], end[name])


def _spread(angles: dict[str, float]) -> tuple[str, ...]:
    if not angles:
        return ("nothing has moved",)
    order = sorted(angles.values())
    middle = order[len(order) // 2]
    span = f"{order[0]:.1f}° to {order[-1]:.1f}°"
    return (f"angles between the runs: {span}, half of {len(order)} tensors below {middle:.1f}°",)
