"""BatchNorm statistics of merged weights: they cannot be averaged and are estimated anew."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from tracer.models.student import Student


def batchnorm_layers(student: Student) -> list[_BatchNorm]:
    """The BatchNorm layers with running statistics."""
    return [m for m in student.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]


@torch.no_grad()
def reestimate(student: Student, images: Iterable[Tensor]) -> None:
    """Set the running statistics to their mean over the batches of `images` under the current weights."""
    layers = batchnorm_layers(student)
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # a plain mean over the batches
    frozen, student.frozen_statistics = student.frozen_statistics, False
    student.train()
    for batch in images:
        student.encode_image(batch)
    student.frozen_statistics = frozen
    student.eval()
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
