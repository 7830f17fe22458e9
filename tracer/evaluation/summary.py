"""The result of a run, `result.json`: task accuracy and retention before and after training."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Int
from torch import Tensor

from tracer.core.metrics import METRICS, agreement, ece, kl, temperature
from tracer.evaluation.held_out import held_out_accuracy
from tracer.evaluation.predict import ImageFeatures, Scorer
from tracer.methods.base import options
from tracer.models.open_clip_compat import open_clip
from tracer.models.student import Student, initialise_from, read_weights
from tracer.parallel import World
from tracer.runs.plan import Plan, prompts_for
from tracer.runs.run import Run
from tracer.storage.atomic import write_json
from tracer.storage.checksum import add_checksum

KNOWN_PROMPT = ("a photo of a {}.",)  # for the names of ImageNet
COLLAPSED = 0.5  # warn if agreement, or accuracy on a retained set relative to before, falls below this
STRENGTH_UNRELATED = ("clipood",)  # methods whose --strength does not increase retention
MAX_COMPARED = 1000  # held-out images on which the agreement of two models is measured


def write_summary(
    plan: Plan, run: Run, world: World, model: Student, workers: int | None = None
) -> dict[str, Any]:
    """Score the pretrained `model` and the run's result, and write `result.json`, which marks the run as finished.

    Retention needs no further data: it is the agreement of both models on which of the 1000 ImageNet names fits each
    held-out image best. Afterwards `model` holds the weights of the result.
    """
    result: dict[str, Any] = {}
    logits = []
    for moment in ("before", "after"):
        if moment == "after":
            initialise_from(model, read_weights(run.weights_file("result")))
        world.place(model)
        scorer = Scorer(model, world, plan.train.classes, workers)
        held_out = scorer.embed(plan.held_out)
        logits.append(imagenet_logits(scorer, held_out))
        result[moment] = _scores(plan, scorer, held_out)
    result["retention"] = {"agreement": agreement(*logits), "kl": kl(*logits)}
    result["warnings"] = warnings(result, plan.experiment.method)
    world.on_first_process(lambda: write_json(run.folder / "result.json", add_checksum(result)))
    return result


def warnings(result: dict[str, Any], method: str) -> list[str]:
    """Warnings about lost accuracy or agreement, followed by advice for a run of this method."""
    messages = []
    for name, before in result["before"]["retain"].items():
        after = result["after"]["retain"][name]
        if after < COLLAPSED * before:
            messages.append(f"{name} fell from {before:.1%} to {after:.1%}")
    if result["retention"]["agreement"] < COLLAPSED:
        messages.append(
            f"it agrees with the pretrained model on only {result['retention']['agreement']:.0%} of images"
        )
    return [*messages, advice(method)] if messages else []


def advice(method: str) -> str:
    """How to retain more with this method; names only flags that the method has."""
    has_strength = method not in STRENGTH_UNRELATED and any(
        option.name == "strength" for option in options(method)
    )
    remedy = "a higher --strength" if has_strength else "a method that retains more, such as tracer"
    return (
        f"to keep more: a lower --lr, {remedy}, fewer steps, or tracer merge RUN --wise 0:1:0.1 --keep 0.98"
    )


def _scores(plan: Plan, scorer: Scorer, held_out: ImageFeatures) -> dict[str, Any]:
    if plan.held_out.labelled:
        logits, label, _ = scorer.score(held_out, plan.templates)
        scores = {name: metric(logits, label) for name, metric in METRICS.items()}
        scores["temperature"] = temperature(logits, label)
    else:
        scores = {"accuracy": held_out_accuracy(scorer, held_out, plan.templates)}
    retained = {data.name: scorer.predict(data, prompts_for(data)) for data in plan.retain}
    return {
        **scores,
        "retain": {name: predictions.accuracy for name, predictions in retained.items()},
        "calibration": {
            name: {"ece": ece(predictions.logits, predictions.label)}
            for name, predictions in retained.items()
        },
    }


def imagenet_logits(scorer: Scorer, held_out: ImageFeatures) -> Tensor:
    """Logits over the names of ImageNet, for up to 1000 held-out images."""
    sample = held_out.take(compared_indices(len(held_out.examples)))
    return scorer.score(sample, KNOWN_PROMPT, tuple(open_clip.IMAGENET_CLASSNAMES)).logits


def describe_compared(images: int) -> str:
    """The number of images that `compared_indices` chooses, as text."""
    if images <= MAX_COMPARED:
        return f"{images} held-out images"
    return f"{MAX_COMPARED} of {images} held-out images, evenly spaced,"


def compared_indices(images: int) -> Int[np.ndarray, " n"]:
    """Indices of the held-out images that are compared: all, or 1000 evenly spaced (data may be sorted by class)."""
    count = min(MAX_COMPARED, images)
    return np.arange(count) * images // max(1, count)
