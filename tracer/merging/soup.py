"""Model soups: the mean of models finetuned from the same weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tracer.core.weights import Weights, mean


def uniform(models: Sequence[Weights]) -> Weights:
    """(1/N) Σ θ_i, summed in float64 and rounded once; integer buffers are those of the first model."""
    merged = {}
    for name, first in models[0].items():
        values = [model[name] for model in models]
        merged[name] = mean(values).to(first.dtype) if first.is_floating_point() else first.clone()
    return merged


def greedy(
    models: Mapping[str, Weights], score: Callable[[Weights], float]
) -> tuple[Weights, list[str], list[str]]:
    """Start from the model with the best score; add each next one if the score of the mean rises.

    Returns the weights, their members, and a note on each model. Reference: model soups (arXiv 2203.05482).
    """
    alone = {name: score(weights) for name, weights in models.items()}
    best, *others = sorted(models, key=lambda name: -alone[name])  # equal scores keep their order
    members, soup, highest = [best], models[best], alone[best]
    notes = [f"{best} starts: {highest:.4f} on the held-out data"]
    for name in others:
        trial = uniform([models[member] for member in [*members, name]])
        trial_score = score(trial)
        if trial_score > highest:
            members, soup, highest = [*members, name], trial, trial_score
            notes.append(f"{name} joins: the mean reaches {trial_score:.4f}")
        else:
            notes.append(
                f"{name} is left out: with it the mean would score {trial_score:.4f}, not above {highest:.4f}"
            )
    return soup, members, notes
