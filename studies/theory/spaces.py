"""Where the inputs X of an instance come from: plain inputs, random features, the tangent of a small network.

Features are drawn anew until they are about as well conditioned as plain inputs are made, and scaled to a
largest singular value near 1; nothing else about their spectrum is arranged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from numpy.random import Generator
from torch import nn

from studies.theory.features import fourier, rectified, tangent
from studies.theory.instances import Instance, instance, paired


@runtime_checkable
class Draw(Protocol):
    """Draws an instance; `tame` ones have singular values and λ near 1, for claims that run descent."""

    def __call__(self, rng: Generator, *, tame: bool = False) -> Instance: ...


FeatureMap = Callable[[Float[ndarray, "d n"]], Float[ndarray, "m n"]]


def random_features(rng: Generator, *, tame: bool = False) -> Instance:
    """Rectified or cosine features of random inputs, more or fewer of them than samples."""
    return _featured(rng, _random_map, tame=tame)


def tangent_features(rng: Generator, *, tame: bool = False) -> Instance:
    """The columns of X are the gradients of a small network's output at its parameters: XᵀX is its NTK."""
    return _featured(rng, _tangent_map, tame=tame)


SPACES: dict[str, Draw] = {
    "inputs": instance,
    "random features": random_features,
    "tangent features": tangent_features,
}


def _featured(rng: Generator, drawn_map: Callable[[Generator, int], FeatureMap], *, tame: bool) -> Instance:
    """Some inputs come more than once, so that X lacks rank; never one alone, whose contrastive W* is zero."""
    widest = 10**0.4 if tame else 1e3  # the largest singular value over the least
    while True:
        dimension, distinct = int(rng.integers(2, 9)), int(rng.integers(2, 5 if tame else 13))
        repeated = rng.integers(distinct, size=int(rng.integers(4)))
        distinct_features = drawn_map(rng, dimension)(rng.normal(size=(dimension, distinct)))
        features = distinct_features[:, [*range(distinct), *repeated]]
        rank, spectrum = min(distinct_features.shape), np.linalg.svd(features, compute_uv=False)
        if 0 < spectrum[0] <= widest * spectrum[rank - 1]:
            scale = 10 ** rng.uniform(-0.2, 0.2) / spectrum[0]
            return paired(rng, scale * features, rank, tame=tame)


def _random_map(rng: Generator, dimension: int) -> FeatureMap:
    kind = (rectified, fourier)[rng.integers(2)]
    return kind(int(rng.integers(2, 33)), dimension, rng)


def _tangent_map(rng: Generator, dimension: int) -> FeatureMap:
    width = int(rng.integers(2, 9))
    network = nn.Sequential(_linear(rng, dimension, width), nn.Tanh(), _linear(rng, width, 1))
    return lambda inputs: tangent(network, torch.from_numpy(inputs.T)).jacobian


def _linear(rng: Generator, inputs: int, outputs: int) -> nn.Linear:
    """Drawn from `rng`: a layer on "meta" neither asks torch's own generator nor moves it."""
    layer = nn.Linear(inputs, outputs, device="meta")
    layer.weight = nn.Parameter(torch.from_numpy(rng.normal(size=(outputs, inputs)) / np.sqrt(inputs)))
    layer.bias = nn.Parameter(torch.from_numpy(rng.normal(size=outputs)))
    return layer
