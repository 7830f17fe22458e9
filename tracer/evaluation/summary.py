"""The result of a run, `result.json`: task accuracy and retention before and after training."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from tracer.core.metrics import (
    METRICS,
    agreement,
    ece,
    kl,
    metric_interval,
    sigmoid_ece,
    temperature,
    wilson_interval,
)
from tracer.core.metrics.scaling import HIGHEST, LOWEST
from tracer.core.weights import Weights
from tracer.evaluation.held_out import evenly_spaced, held_out_accuracy, held_out_hits
from tracer.evaluation.predict import ImageFeatures, Predictions, Scorer
from tracer.evaluation.probe import can_name, emoji_probe
from tracer.evaluation.verdict import MIN_IMAGES, Change
from tracer.methods.base import options
from tracer.models.open_clip_compat import open_clip
from tracer.models.student import Student, initialise_from, read_weights
from tracer.parallel import World
from tracer.runs.plan import Plan, prompts_for
from tracer.runs.run import Run
from tracer.storage.atomic import write_json
from tracer.storage.checksum import add_checksum

KNOWN_NAMES = tuple(open_clip.IMAGENET_CLASSNAMES)  # over which two models are compared
KNOWN_PROMPT = ("a photo of a {}.",)
STRENGTH_UNRELATED = ("clipood",)  # methods whose --strength does not increase retention
MAX_COMPARED = 1000  # held-out images on which the agreement of two models is measured
FEWEST_TO_FIT = 100  # held-out images below which no temperature is fitted
IMAGE_WEIGHTS = ("clip.visual.", "head.")  # weights that no text embedding depends on
HELD_OUT = "held-out"  # the name of the predictions of the held-out set


def write_summary(
    plan: Plan, run: Run, world: World, model: Student, workers: int | None = None
) -> dict[str, Any]:
    """Score the pretrained `model` and the run's result, and write `result.json`, which marks the run as finished.

    Retention is measured on the data of --retain or, without any, by naming the embedded emoji if the pretrained model
    can do that; and as agreement of both models on which of the 1000 ImageNet names fits each held-out image best,
    marked as meaningful without --retain, on enough images, for a model that can name emoji.
    Predictions of the held-out set are saved. Afterwards `model` holds the weights of the result.
    """
    result: dict[str, Any] = {}
    intervals: dict[str, Any] = {}
    probe = () if plan.retain else (emoji_probe(plan.steps * plan.batch),)
    logits, hits, scorer = [], [], None
    for moment, weights in (("before", "pretrained"), ("after", "result")):
        if moment == "after":
            trained = read_weights(run.weights_file("result"))
            scorer = scorer if _same_texts(model, trained) else None
            initialise_from(model, trained)
        world.place(model)
        scorer = Scorer(model, world, plan.train.classes, workers, texts=scorer)
        held_out = scorer.embed(plan.held_out)
        logits.append(imagenet_logits(scorer, held_out))
        retained = {data.name: scorer.predict(data, prompts_for(data)) for data in (*plan.retain, *probe)}
        result[moment] = _scores(plan, scorer, held_out, {name: retained[name] for name in _names(plan)})
        intervals[moment] = result[moment].pop("intervals", {})
        hits.append({"": held_out_hits(scorer, held_out, plan.templates)})
        hits[-1] |= {name: predictions.hits for name, predictions in retained.items()}
        if probe and moment == "before" and not can_name(hits[0][probe[0].name]):
            del hits[0][probe[0].name]  # a model that could not name emoji has nothing of it to lose
            probe = ()
        if plan.held_out.labelled:
            file = run.folder / "predictions" / weights / f"{HELD_OUT}.safetensors"
            predictions = scorer.score(held_out, plan.templates)
            world.on_first_process(partial(predictions.write, file, plan.held_out.classes))
    changes = {name: Change.of(before, hits[1][name]).to_json() for name, before in hits[0].items()}
    result["changes"] = {"task": changes.pop(""), "retain": changes}
    result["intervals"] = intervals
    same, n = agreement(*logits), len(logits[0])
    random = plan.experiment.pretrained == "none"  # nothing was known before, so nothing can be lost
    # A model that cannot name pictures has no opinion on ImageNet's names to keep; --retain measures better.
    meaningful = bool(probe) and not random and n >= MIN_IMAGES
    result["retention"] = {"agreement": same, "kl": kl(*logits), "n": n, "meaningful": meaningful}
    result["retention"]["interval"] = list(wilson_interval(same, n))
    result["warnings"] = [] if random else warnings(result, plan.experiment.method)
    world.on_first_process(lambda: write_json(run.folder / "result.json", add_checksum(result)))
    return result


def _same_texts(model: Student, trained: Weights) -> bool:
    """Whether texts have the same embeddings and scale in `model` as with these weights: their tower was frozen."""
    own = {name: each for name, each in model.state_dict().items() if not name.startswith(IMAGE_WEIGHTS)}
    return all(name in trained and torch.equal(each.cpu(), trained[name].cpu()) for name, each in own.items())


def warnings(result: dict[str, Any], method: str) -> list[str]:
    """Warnings about lost accuracy on what should be retained, followed by advice for a run of this method.

    A loss that could be noise, or of something that the pretrained model could not do, is no warning.
    """
    messages = []
    for name, value in result["changes"]["retain"].items():
        change = Change.from_json(value)
        if change.collapsed:
            messages.append(f"{name} fell from {change.before.value:.1%} to {change.after.value:.1%}")
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


def _names(plan: Plan) -> list[str]:
    return [data.name for data in plan.retain]


def _scores(
    plan: Plan, scorer: Scorer, held_out: ImageFeatures, retained: dict[str, Predictions]
) -> dict[str, Any]:
    if plan.held_out.labelled:
        logits, label, _ = scorer.score(held_out, plan.templates)
        metrics = METRICS | (
            {sigmoid_ece.name: sigmoid_ece} if scorer.by_sigmoid(plan.held_out.classes) else {}
        )
        intervals = {name: metric_interval(metric, logits, label) for name, metric in metrics.items()}
        scores: dict[str, Any] = {name: interval.value for name, interval in intervals.items()}
        scores["intervals"] = {name: list(each) for name, each in intervals.items() if each.known}
        if len(label) >= FEWEST_TO_FIT:
            fitted = temperature(logits, label)
            if LOWEST < fitted < HIGHEST:  # at a bound there is no finite minimum
                scores["temperature"] = fitted
    else:
        scores = {"accuracy": held_out_accuracy(scorer, held_out, plan.templates)}
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
    return scorer.score(sample, KNOWN_PROMPT, KNOWN_NAMES).logits


def describe_compared(images: int) -> str:
    """The number of images that `compared_indices` chooses, as text."""
    if images <= MAX_COMPARED:
        return f"{images} held-out images"
    return f"{MAX_COMPARED} of {images} held-out images, evenly spaced,"


def compared_indices(images: int) -> Int[np.ndarray, " n"]:
    """Indices of the held-out images that are compared: all, or 1000 evenly spaced."""
    return evenly_spaced(images, MAX_COMPARED)
