"""What came out: the task, and what the model already knew, before and after, in one file."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Int
from torch import Tensor

from tracer.core.metrics import METRICS, agreement, ece, kl, temperature
from tracer.evaluation.held_out import held_out_accuracy
from tracer.evaluation.predict import Scorer, Seen
from tracer.methods.base import options
from tracer.models.open_clip_compat import open_clip
from tracer.parallel import World
from tracer.runs.plan import Plan, prompts_for
from tracer.runs.run import Run
from tracer.storage.atomic import write_json
from tracer.storage.checksum import add_checksum

KNOWN_PROMPT = ("a photo of a {}.",)
COLLAPSED = 0.5  # agreement, or share of a retained accuracy, below which a run has lost more than it should
UNHELD = ("clipood",)  # methods whose strength is not that of what holds them back
LOOKED_AT = 1000  # held-out images on which two models are compared over the names of ImageNet


def outcome(plan: Plan, run: Run, world: World, workers: int | None = None) -> dict[str, Any]:
    """Measure the pretrained model and the result alike, and write `result.json`, which ends the run.

    Retention needs no data of its own: on the held-out images, how far do pretrained model and result agree on
    which of the 1000 names of ImageNet fits best, and how far do their distributions lie apart?
    """
    result: dict[str, Any] = {}
    views = []
    for moment, name in (("before", "pretrained"), ("after", "result")):
        scorer = Scorer(run.student(name), world, plan.train.classes, workers)
        world.place(scorer.student)
        held_out = scorer.embed(plan.held_out)
        views.append(view(scorer, held_out))
        result[moment] = _scores(plan, scorer, held_out)
    result["retention"] = {"agreement": agreement(*views), "kl": kl(*views)}
    result["warnings"] = warnings(result, plan.experiment.method)
    world.lead(lambda: write_json(run.folder / "result.json", add_checksum(result)))
    return result


def warnings(result: dict[str, Any], method: str) -> list[str]:
    """What a person should not overlook, and what would help a run of this method."""
    told = []
    for name, before in result["before"]["retain"].items():
        after = result["after"]["retain"][name]
        if after < COLLAPSED * before:
            told.append(f"{name} fell from {before:.1%} to {after:.1%}")
    if result["retention"]["agreement"] < COLLAPSED:
        told.append(
            f"it agrees with the pretrained model on only {result['retention']['agreement']:.0%} of images"
        )
    return [*told, advice(method)] if told else []


def advice(method: str) -> str:
    """How a run of this method would keep more; what it cannot be told is not recommended."""
    held = method not in UNHELD and any(option.name == "strength" for option in options(method))
    more = "a higher --strength" if held else "a method that holds on to the pretrained model, such as tracer"
    return f"to keep more: a lower --lr, {more}, fewer steps, or tracer merge RUN --wise 0:1:0.1 --keep 0.98"


def _scores(plan: Plan, scorer: Scorer, held_out: Seen) -> dict[str, Any]:
    if plan.held_out.labelled:
        found = scorer.score(held_out, plan.templates)
        scores = {name: metric(found.logits, found.label) for name, metric in METRICS.items()}
        scores["temperature"] = temperature(found.logits, found.label)
    else:
        scores = {"accuracy": held_out_accuracy(scorer, held_out, plan.templates)}
    retained = {data.name: scorer.predict(data, prompts_for(data)) for data in plan.retain}
    return {
        **scores,
        "retain": {name: found.accuracy for name, found in retained.items()},
        "calibration": {name: {"ece": ece(found.logits, found.label)} for name, found in retained.items()},
    }


def view(scorer: Scorer, held_out: Seen) -> Tensor:
    """Logits over the names of ImageNet, of up to a thousand held-out images."""
    some = held_out.take(looked_at(len(held_out.examples)))
    return scorer.score(some, KNOWN_PROMPT, tuple(open_clip.IMAGENET_CLASSNAMES)).logits


def compared(images: int) -> str:
    """Which of the held-out images are compared, in words."""
    if images <= LOOKED_AT:
        return f"{images} held-out images"
    return f"{LOOKED_AT} of {images} held-out images, evenly spaced,"


def looked_at(images: int) -> Int[np.ndarray, " n"]:
    """Which of the held-out images are compared: all, or a thousand evenly spaced, since data lie in order of class."""
    count = min(LOOKED_AT, images)
    return np.arange(count) * images // max(1, count)
