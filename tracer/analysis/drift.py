"""Change of the weights by tower and layer, and the direction in which embeddings moved."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from tracer.core.weights import Weights
from tracer.models.towers import CONTAINERS

# Patterns of parameter names inside a tower, with the number of the first layer in them; the first match counts.
LAYERS = (
    *((re.compile(rf"{re.escape(place)}\.(\d+)\."), kind, 0) for place, kind in CONTAINERS.items()),
    (re.compile(r"layer(\d)\."), "stage", 1),
)
LAST = re.compile(r"(?:proj|projection|ln_post|ln_final|attnpool|head)\b")


class Drift(NamedTuple):
    """‖θ − θ₀‖ of one layer, and the same relative to ‖θ₀‖."""

    tower: str
    layer: str
    norm: float
    relative: float


def drift(pretrained: Weights, finetuned: Weights) -> list[Drift]:
    """Drift of every layer that both have, in the order of the layers; keys are those of a student's `state_dict`."""
    squares: dict[tuple[str, str], list[float]] = {}
    for name, start in pretrained.items():
        if name in finetuned and start.is_floating_point():
            change = (finetuned[name].double() - start.double()).square().sum()
            sums = squares.setdefault(tower_and_layer(name), [0.0, 0.0])
            sums[0] += float(change)
            sums[1] += float(start.double().square().sum())
    rows = []
    for (tower, layer), (change, size) in sorted(squares.items(), key=lambda item: _rank(*item[0])):
        relative = math.sqrt(change / size) if size else math.inf if change else 0.0
        rows.append(Drift(tower, layer, math.sqrt(change), relative))
    return rows


def tower_and_layer(name: str) -> tuple[str, str]:
    """The tower and the layer that a parameter belongs to."""
    name = name.removeprefix("clip.")
    if name.startswith("logit_"):
        return "temperature", name
    if name.startswith("head."):
        return "head", "head"
    if name.startswith("text_decoder."):
        return "decoder", "decoder"
    tower = "image" if name.startswith("visual.") else "text"
    inner = name.removeprefix("visual.").removeprefix("text.")
    for pattern, kind, first in LAYERS:
        if match := pattern.match(inner):
            return tower, f"{kind} {int(match[1]) - first + 1}"
    return tower, "projection" if LAST.search(inner) else "embedding"


def _rank(tower: str, layer: str) -> tuple[int, int, int]:
    towers = ("image", "text", "decoder", "temperature", "head")
    kinds = {"embedding": 0, "projection": 2}
    number = layer.rpartition(" ")[2]
    return towers.index(tower), kinds.get(layer, 1), int(number) if number.isdigit() else 0


@torch.no_grad()
def task_share(
    before: Float[Tensor, "n d"], after: Float[Tensor, "n d"], classes: Float[Tensor, "c d"]
) -> tuple[float, float]:
    """The share of the movement of embeddings inside the span of the class embeddings, and its expectation by chance.

    ‖(after − before) P‖² / ‖after − before‖², P the projector on the span; a random movement has rank/d.
    The contrastive gradient of an image embedding lies in that span; movement outside it is a side effect.
    """
    left, values, _ = torch.linalg.svd(classes.double().T, full_matrices=False)
    basis = left[:, values > max(classes.shape) * torch.finfo(values.dtype).eps * values[0]]
    movement = after.double() - before.double()
    total = float(movement.square().sum())
    share = float((movement @ basis).square().sum()) / total if total else math.nan
    return share, basis.shape[1] / classes.shape[1]
