"""All analyses of one run, on its own held-out images, as one JSON value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tracer.analysis.drift import drift, task_share
from tracer.analysis.likeness import likeness
from tracer.analysis.meter import account
from tracer.analysis.path import walk
from tracer.core.metrics import ece, reliability
from tracer.core.weights import Weights
from tracer.data.examples import Examples
from tracer.data.transforms import Transform
from tracer.evaluation.predict import Scorer, Seen
from tracer.methods.heads import ZeroShot
from tracer.models.student import Student, initialise_from
from tracer.models.zero_shot import zero_shot
from tracer.parallel import World
from tracer.runs.plan import Plan, prompts_for
from tracer.runs.run import Run

METERED = 1024  # images whose span is taken for the task's; more add few directions
ALPHAS = tuple(i / 10 for i in range(11))


def examine(
    plan: Plan,
    run: Run,
    world: World,
    *,
    samples: int = 50_000,
    batch: int = 256,
    alphas: Sequence[float] = ALPHAS,
) -> Iterator[tuple[str, Any]]:
    """Parts of the analysis as they are ready: layers, drift, forgetting meter, task share, reliability and path."""
    before, after = run.student("pretrained"), run.student("result")
    for student in (before, after):
        world.place(student)
    some = plan.held_out.take(torch.arange(min(samples, len(plan.held_out))).numpy())
    yield "samples", len(some)
    seen = likeness(before, after, _images(before, some, world, batch))
    yield "layers", [_clean(row._asdict()) for row in seen]
    moved = drift(dict(before.state_dict()), dict(after.state_dict()))
    yield "drift", [_clean(row._asdict()) for row in moved]
    yield "meter", _meter(plan, before, after, world, min(samples, METERED), batch)
    if plan.held_out.labelled:
        scorers = [Scorer(student, world, plan.train.classes) for student in (before, after)]
        seen = [scorer.embed(some) for scorer in scorers]
        yield "task_share", _task_share(plan, before, *seen)
        yield from _calibration(plan, scorers, seen)
        yield "path", list(_path(plan, before, after, some, world, alphas))


def _images(student: Student, examples: Examples, world: World, batch: int) -> Iterator[Tensor]:
    transform = Transform(student.preprocess)
    for start in range(0, len(examples), batch):
        indices = range(start, min(start + batch, len(examples)))
        yield transform.batch(examples.images, indices).to(world.device)


def _meter(
    plan: Plan, before: Student, after: Student, world: World, most: int, batch: int
) -> dict[str, Any]:
    """The task's subspace is spanned by training images; what is retained are the run's --retain data."""

    def some(examples: Examples) -> list[Tensor]:
        spread = np.linspace(0, len(examples) - 1, min(most, len(examples))).astype(int)
        return list(_images(before, examples.take(spread), world, batch))

    found = account(
        before, after, some(plan.train), [images for data in plan.retain for images in some(data)]
    )
    told = {"task": plan.train.name, "retained": [data.name for data in plan.retain], **_clean(found)}
    for part in ("weights", "features"):
        told[part] = [_clean(row) for row in told.get(part, ())]
    return told


def _task_share(plan: Plan, student: Student, before: Seen, after: Seen) -> dict[str, float | None]:
    rows = zero_shot(student, before.examples.classes, plan.templates)
    share, chance = task_share(before.unit.cpu(), after.unit.cpu(), rows.cpu())
    return _clean({"inside": share, "chance": chance})


def _calibration(plan: Plan, scorers: list[Scorer], seen: list[Seen]) -> Iterator[tuple[str, Any]]:
    curves, errors = {}, {}
    for name, scorer, images in zip(("before", "after"), scorers, seen, strict=True):
        found = scorer.score(images, plan.templates)
        curves[name] = [bin._asdict() for bin in reliability(found.logits, found.label).bins]
        errors[name] = ece(found.logits, found.label)
    yield "reliability", curves
    yield "ece", errors


def _path(
    plan: Plan, before: Student, after: Student, some: Examples, world: World, alphas: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """Task and retained accuracy along the straight line; a head starts as the zero-shot classifier."""
    if after.head is not None:
        before.head = world.place(ZeroShot()(before, plan.train, plan.templates, world, 0))  # pyright: ignore[reportAttributeAccessIssue]
    start, end = dict(before.state_dict()), dict(after.state_dict())
    if start.keys() != end.keys() or any(start[name].shape != end[name].shape for name in start):
        return  # a head that does not start from the class names, or added parts: there is no line between them

    def measure(weights: Weights) -> dict[str, float]:
        initialise_from(before, weights)
        scorer = Scorer(before, world, plan.train.classes)
        kept = {data.name: scorer.predict(data, prompts_for(data)).accuracy for data in plan.retain}
        return {"": scorer.predict(some, plan.templates).accuracy, **kept}

    for stop in walk(start, end, measure, alphas):
        scores = dict(stop.scores)
        yield {"alpha": stop.alpha, "accuracy": scores.pop(""), "retain": scores}


def _clean(row: dict[str, Any]) -> dict[str, Any]:
    """JSON has no NaN."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }
