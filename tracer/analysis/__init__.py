"""What finetuning did inside: functions of two models and batches of images, nothing else."""

from __future__ import annotations

from tracer.analysis.cka import hsic, linear_cka, minibatch_cka
from tracer.analysis.drift import Drift, drift, task_share
from tracer.analysis.likeness import Likeness, likeness
from tracer.analysis.moments import Moments
from tracer.analysis.path import Stop, between, walk
from tracer.analysis.svcca import canonical_correlations, svcca

__all__ = [
    "Drift",
    "Likeness",
    "Moments",
    "Stop",
    "between",
    "canonical_correlations",
    "drift",
    "hsic",
    "likeness",
    "linear_cka",
    "minibatch_cka",
    "svcca",
    "task_share",
    "walk",
]
