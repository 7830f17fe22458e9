"""Model soups: the mean of models that began at the same weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch

from tracer.core.weights import Weights


class Greedy(NamedTuple):
    """What a greedy soup is made of, and why it stopped growing."""

    weights: Weights
    members: tuple[str, ...]
    story: tuple[str, ...]


def uniform(models: Sequence[Weights]) -> Weights:
    """(1/N) Σ θ_i; counters are those of the first."""
    merged = {}
    for name, first in models[0].items():
        merged[name] = first.clone()
        if first.is_floating_point():
            for count, model in enumerate(models[1:], start=2):
                merged[name] = torch.lerp(merged[name], model[name], 1 / count)
    return merged


def greedy(models: Mapping[str, Weights], score: Callable[[Weights], float]) -> Greedy:
    """Begin with the best model; add each next one if the mean then scores higher on held-out data, strictly.

    Reference: model soups (arXiv 2203.05482).
    """
    alone = {name: score(weights) for name, weights in models.items()}
    best, *others = sorted(models, key=lambda name: -alone[name])  # equal scores keep their order
    members, soup, height = [best], models[best], alone[best]
    story = [f"{best} starts: {height:.4f} on the held-out data"]
    for name in others:
        trial = uniform([models[member] for member in [*members, name]])
        reached = score(trial)
        if reached > height:
            members, soup, height = [*members, name], trial, reached
            story.append(f"{name} joins: the mean reaches {reached:.4f}")
        else:
            story.append(
                f"{name} is left out: with it the mean would score {reached:.4f}, not above {height:.4f}"
            )
    return Greedy(soup, tuple(members), tuple(story))
