"""BatchNorm after a merge: the statistics of a mean model are not the mean of statistics."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from tracer.models.student import Student


def has_statistics(student: Student) -> bool:
    """Whether the model keeps running statistics of its data at all; transformers do not."""
    return any(_tracked(student))


@torch.no_grad()
def reestimate(student: Student, images: Iterable[Tensor]) -> None:
    """Make the running statistics those of `images` under the student's present weights, each batch alike."""
    layers = list(_tracked(student))
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # a plain mean over the batches
    still, student.frozen_statistics = student.frozen_statistics, False
    student.train()
    for batch in images:
        student.encode_image(batch)
    student.frozen_statistics = still
    student.eval()
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum


def _tracked(student: Student) -> list[_BatchNorm]:
    return [m for m in student.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
