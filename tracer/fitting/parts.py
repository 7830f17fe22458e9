"""The parts of the data: to train on, to choose by, and untouched until the choice is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tracer.core.errors import UserError
from tracer.data.examples import Examples
from tracer.data.options import has_split
from tracer.data.scan import scan
from tracer.data.sources import load
from tracer.data.split import align_labels, default_share
from tracer.evaluation.probe import emoji_probe
from tracer.runs.experiment import Experiment
from tracer.runs.plan import Plan

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

    def without_retain(self) -> Parts:
        """The same without retained data: retention is then the agreement with the pretrained model."""
        return replace(self, retain=(), test_retain=())


def with_test_share(experiment: Experiment) -> Experiment:
    """The experiment with a share of its data set apart for a test, unless the data have a split for it."""
    train = load(experiment.data, split="train", **experiment.keywords)
    if has_split(train.splits, "test") or experiment.test_share is not None:
        return experiment
    return replace(experiment, test_share=default_share(len(train)))


def parts_of(settled: Plan) -> Parts:
    """The parts of the data of a plan whose experiment went through `with_test_share`."""
    experiment = settled.experiment
    if settled.test is not None:
        test = settled.test
    else:
        test = scan(load(experiment.data, split="test", **experiment.keywords))
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


def halves(examples: Examples) -> tuple[Examples, Examples]:
    """The examples in two random halves, each over all classes."""
    order = np.random.default_rng(0).permutation(len(examples))
    middle = len(order) // 2
    return examples.take(np.sort(order[:middle])), examples.take(np.sort(order[middle:]))
