"""Test images that a run was trained on: a score on them says little about others."""

from __future__ import annotations

from functools import partial

from tracer.core.errors import UserError
from tracer.data.checking.duplicates import trained_too
from tracer.data.examples import Examples
from tracer.data.place import leaves_machine
from tracer.data.scan import hashed, scan
from tracer.data.sources import load
from tracer.data.split import Division
from tracer.runs.plan import divide_data
from tracer.runs.run import Run

MOST = 50_000  # images of the training data and of a test set that are compared, to bound the time


def divided(run: Run) -> Division | None:
    """The data of a run as it divided them, with contents; None if they are not here, have changed, or are too many.

    Files that were scanned when the run began are not read again while they stay the same.
    """
    experiment = run.experiment
    if any(
        map(leaves_machine, experiment.sources)
    ):  # the run may be a stranger's, and a test should not wait for it
        return None
    try:
        named = {} if run.class_names is None else {"classes": run.class_names}
        if len(load(experiment.data, split="train", **experiment.keywords | named)) > MOST:
            return None
        check = partial(scan, strict=experiment.strict, skip_unreadable=experiment.skip_unreadable)
        division = divide_data(experiment, check, run.class_names)
    except UserError:
        return None
    same = division.train.content_fingerprint == run.description["data"].get("fingerprint")
    return division if same else None


def trained_warning(train: Examples, examples: Examples, name: str) -> str:
    """How many images of a test set are trained on; empty if none is, or if there are too many to compare."""
    if len(examples) > MOST:
        return ""
    shared = trained_too(train, hashed(examples), f"images of {name}")
    return f"{shared}: scores on them are too good; give images that the run has not seen" if shared else ""
