"""What a model scores on the data of a plan: its held-out set, what is to be retained, and ImageNet's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from tracer.core.metrics import ece, metric_interval, sigmoid_ece, telling, temperature
from tracer.core.metrics.calibration import HIGHEST, LOWEST
from tracer.data.examples import Examples
from tracer.evaluation.predict import Classifiers, ImageFeatures, Scorer
from tracer.evaluation.probe import NAME, can_name, emoji_probe
from tracer.evaluation.retrieval import caption_hits
from tracer.evaluation.verdict import MIN_IMAGES
from tracer.measure.answers import Predictions
from tracer.models.open_clip_compat import open_clip
from tracer.runs.plan import Plan, prompts_for

KNOWN_PROMPT = ("a photo of a {}.",)
MAX_COMPARED = 1000  # held-out images on which the agreement of two models is measured
FEWEST_TO_FIT = 100  # held-out images below which no temperature is fitted
SEEN_FOR_EACH = 25  # images trained on for each image of an evaluation in training
FEWEST_WATCHED = 64


class Measured(NamedTuple):
    """Predictions of one model on the data of a plan."""

    held_out: Predictions | None  # None for data without labels
    hits: list[bool]  # of the held-out set: the class, or one of its own captions if there are no labels
    retained: dict[str, Predictions]  # --retain, or the built-in probe if the pretrained model can name emoji
    names: Float[Tensor, "n k"] | None  # logits over the names of ImageNet, where these mean something
    by_sigmoid: bool = False  # whether the sigmoid of a held-out logit is a probability of the model
    classifiers: Classifiers | None = None  # of the model that was scored; None if read from a file

    @property
    def accuracy(self) -> float:
        """On the held-out set."""
        return sum(self.hits) / len(self.hits)

    def scores(self, retain: list[str]) -> dict[str, Any]:
        """All metrics of the held-out set with their intervals, and accuracy and ECE of these retained sets."""
        return {
            **({"accuracy": self.accuracy} if self.held_out is None else self._metrics(self.held_out)),
            "retain": {name: self.retained[name].accuracy for name in retain},
            "calibration": {
                name: {"ece": ece(self.retained[name].logits, self.retained[name].label)} for name in retain
            },
        }

    def _metrics(self, predictions: Predictions) -> dict[str, Any]:
        logits, label, _ = predictions
        metrics = (*telling(logits.shape[1]), *([sigmoid_ece] if self.by_sigmoid else []))
        intervals = {metric.name: metric_interval(metric, logits, label) for metric in metrics}
        scores: dict[str, Any] = {name: interval.value for name, interval in intervals.items()}
        scores["intervals"] = {name: list(each) for name, each in intervals.items() if each.known}
        if len(label) >= FEWEST_TO_FIT:
            fitted = temperature(logits, label)
            if LOWEST < fitted < HIGHEST:  # at a bound there is no finite minimum
                scores["temperature"] = fitted
        return scores


def measure(plan: Plan, scorer: Scorer, before: Measured | None = None) -> Measured:
    """What a model scores; `before` is what the pretrained model did, if this is not the pretrained model.

    Without --retain, what is kept is measured by naming the embedded emoji, and by which of ImageNet's names fits each
    held-out image best: only of a pretrained model that can name emoji, since others have no opinion on names to keep,
    and the names on enough images.
    """
    held_out = scorer.embed(plan.held_out)
    predictions = scorer.score(held_out, plan.templates) if plan.held_out.labelled else None
    hits = caption_hits(scorer.student, held_out, scorer.world) if predictions is None else predictions.hits
    retained = {data.name: scorer.predict(data, prompts_for(data)) for data in plan.retain}
    if (
        not plan.retain
        and plan.experiment.pretrained != "none"
        and (before is None or NAME in before.retained)
    ):
        probe = emoji_probe(plan.steps * plan.batch)
        named = scorer.predict(probe, prompts_for(probe))
        if before is not None or can_name(named.hits):
            retained[NAME] = named
    compared = NAME in retained and len(compared_indices(len(plan.held_out))) >= MIN_IMAGES
    return Measured(
        predictions,
        hits,
        retained,
        imagenet_logits(scorer, held_out) if compared else None,
        scorer.by_sigmoid(plan.held_out.classes),
        scorer.classifiers,
    )


def held_out_hits(scorer: Scorer, features: ImageFeatures, templates: Sequence[str]) -> list[bool]:
    """Whether each image gets its class, or one of its own captions if the data have no labels."""
    if features.examples.labelled:
        return scorer.score(features, templates).hits
    return caption_hits(scorer.student, features, scorer.world)


def known_names() -> tuple[str, ...]:
    """ImageNet's class names, over which two models are compared."""
    return tuple(open_clip.IMAGENET_CLASSNAMES)


def imagenet_logits(scorer: Scorer, held_out: ImageFeatures) -> Float[Tensor, "n k"]:
    """Logits over the names of ImageNet, for up to 1000 held-out images."""
    sample = held_out.take(compared_indices(len(held_out.examples)))
    return scorer.score(sample, KNOWN_PROMPT, known_names()).logits


def describe_compared(images: int) -> str:
    """The number of images that `compared_indices` chooses, as text."""
    if images <= MAX_COMPARED:
        return f"{images} held-out images"
    return f"{MAX_COMPARED} of {images} held-out images, evenly spaced,"


def compared_indices(images: int) -> Int[np.ndarray, " n"]:
    """Indices of the held-out images that are compared: all, or 1000 evenly spaced."""
    return evenly_spaced(images, MAX_COMPARED)


def watched(held_out: Examples, images_seen: int) -> Int[np.ndarray, " n"]:
    """Indices of the images to watch a run of `images_seen` images by, so that short runs do not spend it on that.

    Without labels these are all: accuracy among captions depends on how many there are.
    """
    most = max(FEWEST_WATCHED, images_seen // SEEN_FOR_EACH) if held_out.labelled else len(held_out)
    return evenly_spaced(len(held_out), most)


def evenly_spaced(count: int, most: int) -> Int[np.ndarray, " n"]:
    """Indices of all of `count` examples, or of `most` that are evenly spaced (data may be sorted by class)."""
    taken = min(count, most)
    return np.arange(taken) * count // max(1, taken)
