"""The result of a run, `result.json`: task accuracy and retention before and after training."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from tracer.core.metrics import agreement, kl, wilson_interval
from tracer.core.weights import Weights
from tracer.evaluation.measured import Measured, measure
from tracer.evaluation.predict import Scorer
from tracer.evaluation.verdict import Change, Verdict
from tracer.measure.answers import Answers, Key, Predictions
from tracer.methods.base import options
from tracer.models.student import Student, initialise_from
from tracer.parallel import World
from tracer.runs.plan import Plan
from tracer.runs.run import Run
from tracer.storage.atomic import write_json
from tracer.storage.checksum import add_checksum

STRENGTH_UNRELATED = ("clipood",)  # methods whose --strength does not increase retention
IMAGE_WEIGHTS = ("clip.visual.", "head.")  # weights that no text embedding depends on
HELD_OUT = "held-out"  # the name of the predictions of the held-out set


def score_result(
    plan: Plan, world: World, model: Student, weights: Weights, before: Measured, workers: int | None = None
) -> Measured:
    """What the weights of a result score; `before` is what the pretrained `model` did, which then holds them."""
    classifiers = before.classifiers if _same_texts(model, weights) else None
    initialise_from(model, weights)
    world.place(model)
    scorer = Scorer(model, world, plan.train.classes, workers, classifiers=classifiers)
    return measure(plan, scorer, before)


def write_summary(
    plan: Plan, run: Run, world: World, before: Measured, after: Measured, *, statistics_moved: bool
) -> None:
    """Write the predictions of the held-out set, then `result.json`, which marks the run as finished.

    `statistics_moved`: whether the running statistics of the model, as of BatchNorm, are not those of the start.
    """
    result: dict[str, Any] = {}
    for moment, weights, measured in (("before", "pretrained", before), ("after", "result", after)):
        result[moment] = measured.scores([data.name for data in plan.retain])
        if measured.held_out is not None:
            world.on_first_process(partial(_keep, plan, run, weights, measured.held_out))
    retained = {
        name: Change.of(each.hits, after.retained[name].hits) for name, each in before.retained.items()
    }
    outcome = Verdict(Change.of(before.hits, after.hits), retained)
    result["changes"] = outcome.to_json()
    result["intervals"] = {moment: result[moment].pop("intervals", {}) for moment in ("before", "after")}
    result["retention"] = _agreement(before, after)
    random = plan.experiment.pretrained == "none"  # nothing was known before, so nothing can be lost
    moved = result["statistics_moved"] = statistics_moved and not random
    result["warnings"] = [] if random else warnings(outcome, plan.experiment.method, moved)
    world.on_first_process(lambda: write_json(run.folder / "result.json", add_checksum(result)))


def _keep(plan: Plan, run: Run, weights: str, predictions: Predictions) -> None:
    """Keep what the weights answered of the held-out set."""
    key = Key.of(plan.held_out, templates=plan.templates)
    classes = plan.held_out.classes
    answers = Answers.of(HELD_OUT, "task", key, run.by(weights), predictions, classes=classes)
    run.answers(weights).write(answers)


def _same_texts(model: Student, trained: Weights) -> bool:
    """Whether texts have the same embeddings and scale in `model` as with these weights: their tower was frozen."""
    own = {name: each for name, each in model.state_dict().items() if not name.startswith(IMAGE_WEIGHTS)}
    return all(name in trained and torch.equal(each.cpu(), trained[name].cpu()) for name, each in own.items())


def _agreement(before: Measured, after: Measured) -> dict[str, Any]:
    """How often both models choose the same of ImageNet's names, if that means something."""
    if before.names is None or after.names is None:
        return {"meaningful": False}
    same, n = agreement(before.names, after.names), len(before.names)
    divergence = kl(before.names, after.names)
    interval = list(wilson_interval(same, n))
    return {"agreement": same, "kl": divergence, "n": n, "meaningful": True, "interval": interval}


def warnings(outcome: Verdict, method: str, statistics_moved: bool = False) -> list[str]:
    """Warnings about lost accuracy on what should be retained, followed by advice for a run of this method.

    A loss that could be noise, or of something that the pretrained model could not do, is no warning.
    """
    messages = [
        f"{name} fell from {change.before.value:.1%} to {change.after.value:.1%}"
        for name, change in outcome.retained.items()
        if change.collapsed
    ]
    return [*messages, advice(method, statistics_moved)] if messages else []


def advice(method: str, statistics_moved: bool = False) -> str:
    """How to retain more with this method; names only flags that the method has."""
    if statistics_moved:  # the first suspect, which no other setting helps against
        return "to keep more: --batchnorm keep, because updated BatchNorm statistics forget at any --lr"
    has_strength = method not in STRENGTH_UNRELATED and any(
        option.name == "strength" for option in options(method)
    )
    remedy = "a higher --strength" if has_strength else "a method that retains more, such as tracer"
    return (
        f"to keep more: a lower --lr, {remedy}, fewer steps, or tracer merge RUN --wise 0:1:0.1 --keep 0.98"
    )
