"""The straight line in weight space between two models, and how they do on the way (linear mode connectivity)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import torch

from tracer.core.weights import Weights


class Stop(NamedTuple):
    """What was measured at one point of the line; 0 is the first model, 1 the second."""

    alpha: float
    scores: Mapping[str, float]


def between(first: Weights, second: Weights, alpha: float) -> Weights:
    """(1 − α) · first + α · second, exactly first at 0 and second at 1; integers are the second's."""
    if first.keys() != second.keys():
        raise ValueError(f"weights of two models differ in {sorted(first.keys() ^ second.keys())[:3]}")
    if alpha in (0, 1):
        return dict(first if alpha == 0 else second)
    return {
        name: torch.lerp(start, second[name], alpha) if start.is_floating_point() else second[name]
        for name, start in first.items()
    }


def walk(
    first: Weights,
    second: Weights,
    measure: Callable[[Weights], Mapping[str, float]],
    alphas: Iterable[float],
) -> Iterator[Stop]:
    """Measure at each α in turn."""
    for alpha in alphas:
        yield Stop(alpha, measure(between(first, second, alpha)))
