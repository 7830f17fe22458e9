"""Model Stock: two students, each epoch replaced by the point between them that is nearest to their centre."""

from __future__ import annotations

from functools import partial

from tracer.core.model_stock import By, stock_weights
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
    """A task loss; the angle between the students says how far the pretrained weights are mixed in again.

    Args:
        replicas: students that train side by side, each with its own order of the data.
        merge_epochs: epochs between two merges; they also merge at the end.
        by: one ratio a "tensor" or one a "row".
        loss: the task loss: a classification head on the image tower, or the contrastive loss.
        tune: under the contrastive loss, "both" towers or the "image" tower alone.
    """
    return Method(
        (task(loss, tune=tune),),
        replicas=Replicas(replicas, partial(stock_weights, by=by), merge_epochs),
        title="Model Stock",
        paper="arXiv:2403.19522",
        year=2024,
        matter=("merge_epochs", "lr"),
    )
