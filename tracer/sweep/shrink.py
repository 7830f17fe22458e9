"""A rehearsal of a sweep: the same chain with a tiny model and few steps, to see that everything works."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tracer.methods.base import options
from tracer.models.registry import locate, shipped_models
from tracer.runs.experiment import Experiment
from tracer.sweep.product import START, Sweep

BATCH = 16
TEMPLATE = "a photo of a {}."


def shrunk(sweep: Sweep, factor: int) -> Sweep:
    """The sweep with 1/factor of all steps, a tiny model of the same kind with random weights, and small batches.

    Warm-up and the intervals of teachers shrink with the steps. One prompt replaces the many, and incomplete test sets
    are accepted. Methods and all their other options are as they were; the scores mean nothing.
    """
    experiments = tuple(_shrunk(each, factor) for each in sweep.experiments)
    start = sweep.start and _shrunk(sweep.start, factor)
    tests = sweep.tests and replace(sweep.tests, templates=TEMPLATE, allow_partial=True)
    return replace(sweep, experiments=experiments, start=start, tests=tests)


def _shrunk(experiment: Experiment, factor: int) -> Experiment:
    steps = None if experiment.steps is None else max(2, round(experiment.steps / factor))
    warmup = experiment.warmup
    if warmup is not None and warmup >= 1:
        warmup = min((steps or 2) - 1, max(1, round(warmup / factor)))
    defaults = {option.name: option.default for option in options(experiment.method)}
    interval = experiment.options.get("every", defaults.get("every"))  # counted in steps if it is above 1
    if isinstance(interval, int | float) and interval > 1:
        interval = {"every": type(interval)(max(1, round(interval / factor)))}
    else:
        interval = {}
    return replace(
        experiment,
        steps=steps,
        warmup=warmup,
        batch=min(BATCH, experiment.batch or BATCH),
        templates=experiment.templates and TEMPLATE,  # else those of the data
        options=experiment.options | interval,
        **_tiny(experiment.model),
    )


def _tiny(model: str) -> dict[str, Any]:
    """The settings of a tiny model of the same kind; none if the model is tiny already."""
    if model == START or model in shipped_models():
        return {}
    layers = locate(model, None).config["vision_cfg"].get("layers")
    return {"model": "tiny-rn-32" if isinstance(layers, list | tuple) else "tiny-32", "pretrained": "none"}
