"""Running statistics: buffers that a forward pass in train mode changes, without a gradient and at any learning rate.

BatchNorm and its relatives have them: SyncBatchNorm, InstanceNorm with `track_running_stats`, timm's variants.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from tracer.core.errors import UserError
from tracer.core.weights import Weights

PREFIX = "running_"  # of the names of such buffers
COUNT = "num_batches_tracked"


def running_layers(model: nn.Module) -> dict[str, Any]:
    """The layers with running statistics by name: those that own some and a momentum to update them with.

    FrozenBatchNorm has no momentum: its statistics are constants. It is no question of a class, because timm's norms
    (EvoNorm, InplaceAbn) are not derived from torch's. Raises UserError for a layer that has statistics and neither is
    frozen nor has a momentum: nothing here would keep or estimate them.
    """
    layers = {}
    for name, layer in model.named_modules():
        if not any(each.startswith(PREFIX) for each in _own_buffers(layer)):
            continue
        if "momentum" in vars(layer):
            layers[name] = layer
        elif "Frozen" not in type(layer).__name__:
            kind = type(layer).__name__
            raise UserError(f"{name} keeps statistics of images in a way that is not known: {kind}")
    return layers


def running_statistics(model: nn.Module) -> list[str]:
    """The names of all running statistics in the state of a model, the counts of batches included."""
    return [
        f"{name}.{statistic}" if name else statistic
        for name, layer in running_layers(model).items()
        for statistic in _own_buffers(layer)
        if statistic.startswith(PREFIX) or statistic == COUNT
    ]


def moved(model: nn.Module, start: Weights, end: Weights) -> bool:
    """Whether the running statistics of two sets of weights of this model differ."""
    return any(not torch.equal(start[name].cpu(), end[name].cpu()) for name in running_statistics(model))


@torch.no_grad()
def estimate(model: nn.Module, batches: Iterable[Tensor]) -> None:
    """Set the running statistics of a model to their means over these batches, and the model to eval mode.

    Nothing else is in train mode meanwhile, so that no dropout disturbs them.
    """
    model.eval()
    layers = [*running_layers(model).values()]
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.training = True
        if COUNT in (own := _own_buffers(layer)):
            own[COUNT].zero_()
    try:
        for number, batch in enumerate(batches, 1):
            for layer in layers:
                layer.momentum = 1 / number  # the first batch replaces what was there
            model(batch)
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        model.eval()


def _own_buffers(layer: nn.Module) -> dict[str, Tensor]:
    return dict(layer.named_buffers(recurse=False))
