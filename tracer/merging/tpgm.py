"""TPGM: project each tensor to a ball around its pretrained value, with radii learned on held-out data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from tracer.core.batch import Batch, Embedding
from tracer.core.projection import TINY, Norm, norms, project
from tracer.core.weights import Weights
from tracer.models.student import Student


class Radii(NamedTuple):
    """A radius for each changed tensor outside the head, and the largest distance of its rows from the start."""

    radius: dict[str, Tensor]
    farthest: dict[str, float]


def first_radii(start: Weights, end: Weights, norm: Norm) -> Radii:
    """Initial radii: half the smallest distance of a tensor's rows, in [1e-8, the largest distance]."""
    radius, farthest = {}, {}
    for name, origin in start.items():
        if origin.is_floating_point() and not name.startswith("head.") and not torch.equal(origin, end[name]):
            distances = norms(end[name] - origin, norm)
            farthest[name] = float(distances.max())
            radius[name] = (distances.min() / 2).clamp(TINY, farthest[name])
    return Radii(radius, farthest)


def projected(start: Weights, end: Weights, radius: dict[str, Tensor], norm: Norm) -> Weights:
    """`end` with each tensor projected to its radius around `start`; tensors without a radius are unchanged."""
    return {
        name: project(start[name], value, radius[name], norm) if name in radius else value
        for name, value in end.items()
    }


def learn_radii(
    start: Weights, end: Weights, student: Student, batches: Iterable[Batch], norm: Norm = "rows"
) -> tuple[Weights, Radii]:
    """Learn the radii by Adam on the cross-entropy of `batches`, one step per batch, with all weights fixed.

    Published for CLIP on ImageNet: 200 batches of 64 held-out images. Reference: TPGM (arXiv 2303.10720).
    """
    radii = first_radii(start, end, norm)
    if not radii.radius:
        return end, radii
    learned = {name: value.clone().requires_grad_(True) for name, value in radii.radius.items()}
    adam = torch.optim.Adam(learned.values(), lr=1e-2)
    student.eval().requires_grad_(False)
    for batch in batches:
        assert batch.label is not None
        logits = class_logits(student, batch, projected(start, end, learned, norm))
        adam.zero_grad()
        cross_entropy(logits, batch.label).backward()
        adam.step()
        with torch.no_grad():
            for name, value in learned.items():
                value.clamp_(TINY, radii.farthest[name])
    radius = {name: value.detach() for name, value in learned.items()}
    return projected(start, end, radius, norm), Radii(radius, radii.farthest)


def class_logits(student: Student, batch: Batch, weights: Weights | None = None) -> Float[Tensor, "n c"]:
    """Logits of the head if there is one, else of the prompts in `batch.text`, one per class.

    Differentiable in `weights`, which replace the student's own without being loaded into it.
    """
    needs = frozenset({"text" if student.head is None else "scores"})
    embedding: Embedding = functional_call(student, weights or {}, (batch, needs))
    return embedding.logits if embedding.scores is None else embedding.scores
