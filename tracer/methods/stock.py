"""Model Stock: several students, merged with the pretrained weights every epoch."""

from __future__ import annotations

from tracer.core import model_stock
from tracer.core.model_stock import By
from tracer.methods.base import Method, Replicas
from tracer.methods.supervised import Loss, task
from tracer.models.trainable import Towers


def stock(
    *,
    replicas: int = 2,
    merge_epochs: float = 1.0,
    by: By = "tensor",
    loss: Loss = "classify",
    tune: Towers = "both",
) -> Method:
    """A task loss on several students, merged by the angle between them.

    The pretrained weights are the third corner of the merge.

    Args:
        replicas: number of students, each with its own order of the data.
        merge_epochs: epochs between two merges; the last one is at the end.
        by: one merging ratio per "tensor" or per "row".
        loss: the task loss: "classify" with a head on the image tower, or "contrastive".
        tune: with the contrastive loss, train "both" towers, the "image" tower, "norms", "biases" or "last-6" blocks.
    """
    return Method(
        (task(loss, tune=tune),),
        replicas=Replicas(replicas, lambda start, ends: model_stock.stock(start, ends, by)[0], merge_epochs),
        title="Model Stock",
        paper="arXiv:2403.19522",
        year=2024,
        matter=("merge_epochs", "lr"),
    )
