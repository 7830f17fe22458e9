"""All analyses of one run on its held-out images, as JSON values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from tracer.analysis.drift import drift, task_share
from tracer.analysis.layers import layer_similarity
from tracer.core.metrics import ece, reliability
from tracer.data.examples import Examples
from tracer.data.transforms import Transform
from tracer.evaluation.predict import Scorer
from tracer.merging.wise import interpolate
from tracer.methods.heads import ZeroShot
from tracer.models.student import Student, initialise_from
from tracer.models.zero_shot import zero_shot
from tracer.parallel import World
from tracer.runs.plan import Plan, prompts_for
from tracer.runs.run import Run


def analyse_run(
    plan: Plan, run: Run, world: World, *, samples: int, batch: int, alphas: Sequence[float]
) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of each part: layers, drift, task share, reliability, path."""
    before, after = run.student("pretrained"), run.student("result")
    for student in (before, after):
        world.place(student)
    images = plan.held_out.take(np.arange(min(samples, len(plan.held_out))))
    yield "samples", len(images)
    similarities = layer_similarity(before, after, _batches(before, images, world, batch))
    yield "layers", _without_nan([row._asdict() for row in similarities])
    drifts = drift(dict(before.state_dict()), dict(after.state_dict()))
    yield "drift", _without_nan([row._asdict() for row in drifts])
    if plan.held_out.labelled:
        scorers = [Scorer(student, world, plan.train.classes) for student in (before, after)]
        embeddings = [scorer.embed(images) for scorer in scorers]
        classifier = zero_shot(before, images.classes, plan.templates)
        first, last = (each.unit.cpu() for each in embeddings)
        share, chance = task_share(first, last, classifier.cpu())
        yield "task_share", _without_nan({"inside": share, "chance": chance})
        curves, errors = {}, {}
        for name, scorer, features in zip(("before", "after"), scorers, embeddings, strict=True):
            logits, label, _ = scorer.score(features, plan.templates)
            curves[name] = [bin._asdict() for bin in reliability(logits, label).bins]
            errors[name] = ece(logits, label)
        yield "reliability", curves
        yield "ece", errors
        yield "path", list(_path(plan, before, after, images, world, alphas))


def _batches(student: Student, examples: Examples, world: World, batch: int) -> Iterator[Tensor]:
    transform = Transform(student.preprocess_cfg)
    for start in range(0, len(examples), batch):
        indices = range(start, min(start + batch, len(examples)))
        yield transform.batch(examples.images, indices).to(world.device)


def _path(
    plan: Plan, before: Student, after: Student, images: Examples, world: World, alphas: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """Task and retained accuracy at each α; a head starts as the zero-shot classifier. Overwrites `before`.

    Empty where the two models have different parameters, such as a head that was not initialised from class names.
    """
    if after.head is not None:
        before.head = world.place(ZeroShot()(before, plan.train, plan.templates, world, 0))  # pyright: ignore[reportAttributeAccessIssue]
    start = {name: tensor.clone() for name, tensor in before.state_dict().items()}
    end = dict(after.state_dict())
    if start.keys() != end.keys() or any(start[name].shape != end[name].shape for name in start):
        return
    for alpha in alphas:
        initialise_from(before, interpolate(start, end, alpha))
        scorer = Scorer(before, world, plan.train.classes)
        retained = {data.name: scorer.predict(data, prompts_for(data)).accuracy for data in plan.retain}
        accuracy = scorer.predict(images, plan.templates).accuracy
        yield {"alpha": alpha, "accuracy": accuracy, "retain": retained}


def _without_nan(value: Any) -> Any:
    """The value with None for NaN and infinities, which JSON lacks, in all its rows."""
    if isinstance(value, dict):
        return {name: _without_nan(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
