"""The parts of the data: to train on, to choose by, and untouched until the choice is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tracer.core.errors import UserError
from tracer.data.checking.duplicates import shared_images
from tracer.data.examples import Examples
from tracer.data.scan import hashed, scan
from tracer.data.sources import load
from tracer.data.split import align_labels, default_share
from tracer.evaluation.overlap import MOST, divided
from tracer.evaluation.probe import emoji_probe
from tracer.fitting.candidates import WITHOUT_RATE
from tracer.runs.experiment import Experiment
from tracer.runs.plan import Plan
from tracer.runs.run import Run

PROBE = 480  # emoji to name, if no data are given to retain; half of them to choose by
FEWEST = 20  # held-out or test images


@dataclass(frozen=True)
class Parts:
    """What trials are chosen by, beside their held-out images, and what the choice is tested on."""

    retain: tuple[Examples, ...]
    test: Examples
    test_retain: tuple[Examples, ...]

    @property
    def retained_by_head(self) -> bool:
        """Whether a trained head answers on retained data, because they have the classes of the task."""
        return any(each.classes == self.test.classes for each in self.retain)


def with_test_share(experiment: Experiment) -> Experiment:
    """The experiment with a share of its data set apart for a test, unless the data have a split for it."""
    train = load(experiment.data, split="train", **experiment.keywords)
    if "test" in train.splits or experiment.test_share is not None:
        return experiment
    return replace(experiment, test_share=default_share(len(train)))


def parts_of(settled: Plan) -> Parts:
    """The parts of the data of a plan whose experiment went through `with_test_share`."""
    experiment = settled.experiment
    if settled.test is not None:
        test = settled.test
    else:
        test = scan(load(experiment.data, split="test", **experiment.keywords | {"classes": settled.names}))
        test = align_labels(test, settled.train.classes)
    for examples, what in ((settled.held_out, "to choose by"), (test, "to test the choice on")):
        if len(examples) < FEWEST:
            raise UserError(
                f"{experiment.data} leaves {len(examples)} images {what}, and {FEWEST} are needed: "
                "add images, or use tracer train, which chooses nothing by them"
            )
    retained = settled.retain or (emoji_probe(100 * PROBE, PROBE),)
    first, second = zip(*map(halves, retained), strict=True)
    return Parts(first, test, second)


def check_known(accuracies: Mapping[str, float]) -> None:
    """Raise UserError if the pretrained model is never right on one of the retained data sets."""
    for name, accuracy in accuracies.items():
        if not accuracy:
            raise UserError(
                f"--retain {name}: the pretrained model is right on none of its images, so there is nothing to keep; "
                "check its class names, or give other data"
            )


def seen_warning(run: Run, settled: Plan, test: Examples) -> str:
    """How many test and held-out images the run, which is the model, was trained on, and what to do.

    Empty if there are none, or if that cannot be known.
    """
    if run.experiment.method in WITHOUT_RATE:  # whose towers are as they were; a head is not taken over
        return ""
    division = divided(run)
    if division is None or max(len(settled.train), len(test)) > MOST:
        return ""
    parts = {"test": hashed(test), "held-out": hashed(settled.held_out)}
    shared = {name: len(shared_images(division.train, part)) for name, part in parts.items()}
    if not any(shared.values()):
        return ""
    counts = " and ".join(f"{shared[name]} of {len(part)} {name} images" for name, part in parts.items())
    known = [each for each in (division.train, division.held_out, division.test) if each is not None]
    train = hashed(settled.train)
    whole = {i for each in known for i in shared_images(each, train)} == set(range(len(train)))
    same = f"{settled.experiment.data} are the data of {run.folder}: " if whole else ""
    return (
        f"{same}the model was trained on {counts} in {run.folder}, so that scores on them are too good. "
        "Give --data that the run has not seen"
    )


def halves(examples: Examples) -> tuple[Examples, Examples]:
    """The examples in two random halves, each over all classes."""
    order = np.random.default_rng(0).permutation(len(examples))
    middle = len(order) // 2
    return examples.take(np.sort(order[:middle])), examples.take(np.sort(order[middle:]))
