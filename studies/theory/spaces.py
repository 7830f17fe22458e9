"""Sources of the inputs X of an instance: plain inputs, random features, tangent features of a small network.

Features are redrawn until they are about as well conditioned as plain inputs, and scaled to a largest singular value
near 1; their spectrum is otherwise arbitrary.
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
    """Draws an instance; `well_conditioned` ones have singular values and λ near 1, for claims that run descent."""

    def __call__(self, rng: Generator, *, well_conditioned: bool = False) -> Instance: ...


FeatureMap = Callable[[Float[ndarray, "d n"]], Float[ndarray, "m n"]]


def random_features(rng: Generator, *, well_conditioned: bool = False) -> Instance:
    """Rectified or cosine features of random inputs, more or fewer than samples."""
    return _featured(rng, _random_map, well_conditioned=well_conditioned)


def tangent_features(rng: Generator, *, well_conditioned: bool = False) -> Instance:
    """The columns of X are the gradients of a small network's output by its parameters: XᵀX is its NTK."""
    return _featured(rng, _tangent_map, well_conditioned=well_conditioned)


SPACES: dict[str, Draw] = {
    "inputs": instance,
    "random features": random_features,
    "tangent features": tangent_features,
}


def _featured(
    rng: Generator, drawn_map: Callable[[Generator, int], FeatureMap], *, well_conditioned: bool
) -> Instance:
    """Some inputs are repeated, so that X is rank deficient; at least two are distinct, else W* would be zero."""
    widest = 10**0.4 if well_conditioned else 1e3  # largest over smallest singular value
    while True:
        dimension, distinct = int(rng.integers(2, 9)), int(rng.integers(2, 5 if well_conditioned else 13))
        repeated = rng.integers(distinct, size=int(rng.integers(4)))
        distinct_features = drawn_map(rng, dimension)(rng.normal(size=(dimension, distinct)))
        features = distinct_features[:, [*range(distinct), *repeated]]
        rank, spectrum = min(distinct_features.shape), np.linalg.svd(features, compute_uv=False)
        if 0 < spectrum[0] <= widest * spectrum[rank - 1]:
            scale = 10 ** rng.uniform(-0.2, 0.2) / spectrum[0]
            return paired(rng, scale * features, rank, well_conditioned=well_conditioned)


def _random_map(rng: Generator, dimension: int) -> FeatureMap:
    kind = (rectified, fourier)[rng.integers(2)]
    return kind(int(rng.integers(2, 33)), dimension, rng)


def _tangent_map(rng: Generator, dimension: int) -> FeatureMap:
    width = int(rng.integers(2, 9))
    network = nn.Sequential(_linear(rng, dimension, width), nn.Tanh(), _linear(rng, width, 1))
    return lambda inputs: tangent(network, torch.from_numpy(inputs.T)).jacobian


def _linear(rng: Generator, inputs: int, outputs: int) -> nn.Linear:
    """A layer drawn from `rng`; creating it on "meta" leaves torch's own generator alone."""
    layer = nn.Linear(inputs, outputs, device="meta")
    layer.weight = nn.Parameter(torch.from_numpy(rng.normal(size=(outputs, inputs)) / np.sqrt(inputs)))
    layer.bias = nn.Parameter(torch.from_numpy(rng.normal(size=outputs)))
    return layer
