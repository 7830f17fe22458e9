"""The merges of `tracer merge`: each makes one set of weights of a group of runs, with scores and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median_high
from typing import Any

import torch

from tracer.core.errors import UserError
from tracer.core.model_stock import By, stock
from tracer.core.projection import Norm
from tracer.core.weights import Weights
from tracer.data.loader import Batches
from tracer.data.transforms import Transform
from tracer.evaluation.measured import describe_compared
from tracer.merging import choose
from tracer.merging.choose import Candidate, Choice
from tracer.merging.evaluator import Evaluator, Scores
from tracer.merging.fisher import fisher, fisher_information
from tracer.merging.soup import greedy, uniform
from tracer.merging.tpgm import learn_radii
from tracer.merging.wise import IMAGE_TOWER, interpolate
from tracer.models.prompts import render

FISHER_IMAGES = 256  # held-out images from which the Fisher information is estimated


@dataclass(frozen=True)
class Merged:
    """Merged weights with their name, scores, notes, and the candidates of a sweep."""

    name: str
    weights: Weights
    scores: Scores
    notes: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)


def interpolation(
    evaluator: Evaluator, alphas: Sequence[float], how: str = "wise", keep: float | None = None
) -> Merged:
    """The chosen α of an interpolation of all weights ("wise"), the image tower ("paint"), or by Fisher ("fisher")."""
    start, end = evaluator.group.start, evaluator.group.end
    merge = partial(interpolate, start, end, prefix=IMAGE_TOWER if how == "paint" else "")
    if how == "fisher":
        f0, f1 = (_fisher_information(evaluator, weights) for weights in (start, end))
        merge = partial(fisher, start, end, f0=f0, f1=f1)
    candidates = tuple(choose.sweep(alphas, merge, evaluator))
    if keep is not None:
        choice = choose.strongest(candidates, keep, evaluator.before, _retention_images(evaluator))
    elif len(candidates) == 1:
        choice = Choice(candidates[0], "as given")
    else:
        choice = choose.balanced(candidates) if how == "paint" else choose.best(candidates)
    alpha, scores = choice.candidate
    weights = choose.weights_at(alpha, merge, evaluator)
    note, scores = f"α = {alpha:g}: {choice.why}", scores._replace(optimism=choice.optimism)
    return Merged(f"{how}-{alpha:g}", weights, scores, (note,), candidates, {"alpha": alpha})


def soup(evaluator: Evaluator, kind: str) -> Merged:
    """The uniform soup of all runs, or the greedy soup where there are enough held-out images to choose by."""
    ends, images = evaluator.group.ends, len(evaluator.held_out)
    if kind == "uniform" or images < choose.FEWEST:
        weights = evaluator.with_batchnorm_statistics(uniform(list(ends.values())))
        notes = [f"the mean of {len(ends)} runs"]
        if kind == "greedy":
            notes += [
                f"{images} held-out images are too few to leave runs out by (--held-out gives more data)"
            ]
        return Merged("soup-uniform", weights, evaluator(weights), tuple(notes))
    weights, members, notes = greedy(
        ends, lambda weights: evaluator(evaluator.with_batchnorm_statistics(weights)).accuracy
    )
    if len(members) > 1:
        weights = evaluator.with_batchnorm_statistics(weights)
    return Merged("soup-greedy", weights, evaluator(weights), tuple(notes), details={"members": members})


def model_stock(evaluator: Evaluator, by: By) -> Merged:
    """Model Stock of all runs, with the angle between the runs for every tensor that changed."""
    start, ends = evaluator.group.start, list(evaluator.group.ends.values())
    merged, cosines = stock(start, ends, by)
    angles = {
        name: float(torch.rad2deg(torch.acos(torch.tensor(cos))))
        for name, cos in cosines.items()
        if any(not torch.equal(start[name], end[name]) for end in ends)
    }
    note = "no tensor has changed"
    if angles:
        lowest, median, highest = (pick(angles.values()) for pick in (min, median_high, max))
        span = f"{lowest:.1f}° to {highest:.1f}°, median {median:.1f}°"
        note = f"angles between the runs: {span} over {len(angles)} tensors"
    weights = evaluator.with_batchnorm_statistics(merged)
    return Merged(f"stock-{by}", weights, evaluator(weights), (note,), details={"angles": angles})


def tpgm(evaluator: Evaluator, norm: Norm, steps: int) -> Merged:
    """TPGM: the run's weights projected to radii that are learned on the held-out data."""
    start, end, held_out = evaluator.group.start, evaluator.group.end, evaluator.held_out
    prompts, student = _prompts(evaluator, "tpgm"), evaluator.scorer(end).student
    transform = Transform(student.preprocess_cfg)
    drawn = Batches(held_out, batch=min(64, len(held_out)), seed=0, transform=transform)
    batches = (evaluator.world.to_device(drawn[step]._replace(text=prompts)) for step in range(steps))
    weights, learned = learn_radii(start, end, student, batches, norm)
    weights = evaluator.with_batchnorm_statistics({name: tensor.detach() for name, tensor in weights.items()})
    shares = {name: float(radius) / learned.farthest[name] for name, radius in learned.radius.items()}
    median = median_high(shares.values()) if shares else 1.0
    note = f"{len(shares)} radii; the median tensor keeps {median:.1%} of its largest row's distance"
    return Merged("tpgm", weights, evaluator(weights), (note,), details={"kept_share": shares})


def _fisher_information(evaluator: Evaluator, weights: Weights) -> Weights:
    prompts = _prompts(evaluator, "fisher")
    student, device = evaluator.scorer(weights).student, evaluator.world.device
    rows = range(min(FISHER_IMAGES, len(evaluator.held_out)))
    images = Transform(student.preprocess_cfg).batch(evaluator.held_out.images, rows)
    information = fisher_information(student, images.to(device), prompts.to(device))
    return {name: tensor.cpu() for name, tensor in information.items()}


def _prompts(evaluator: Evaluator, how: str) -> torch.Tensor:
    """One prompt per class; UserError if the held-out images have no labels."""
    group = evaluator.group
    if not evaluator.held_out.labelled:
        data = f"{evaluator.held_out.name}, held out by {group.runs[0].folder}"
        raise UserError(f"{how} needs labels, and {data}, has none")
    return group.student.tokeniser(
        [render(group.plan.templates[0], name) for name in group.plan.train.classes]
    )


def _retention_images(evaluator: Evaluator) -> str:
    """What retention was measured on, with the number of images."""
    if evaluator.retain:
        return " and of ".join(f"{data.name} ({len(data)} images)" for data in evaluator.retain)
    images = describe_compared(len(evaluator.held_out))
    return f"the names given to {images} (of a model that can name little: --retain DATA says more)"
