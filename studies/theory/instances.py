"""Random instances for the tests of the theorems."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.random import Generator

from studies.theory.problem import Problem, contrastive
from tracer.core.kernels import Beta, Early, Exponential, Kernel, Late, Triangular, Uniform
from tracer.core.teachers import EMA, WMA, Frozen, Teacher

CLOCKS: tuple[Literal["progress", "updates"], ...] = ("progress", "updates")


@dataclass(frozen=True)
class Instance:
    """Image-text pairs, two pretrained maps and λ. `rank` is the rank of the images."""

    images: Float[ndarray, "d n"]
    texts: Float[ndarray, "e n"]
    image_map: Float[ndarray, "p d"]
    text_map: Float[ndarray, "p e"]
    strength: float
    rank: int

    @cached_property
    def problem(self) -> Problem:
        return contrastive(self.images, self.texts, self.image_map, self.text_map)


def instance(rng: Generator, *, well_conditioned: bool = False) -> Instance:
    """A random instance of any shape and rank: tall or wide, full or deficient.

    Singular values span three decades and λ six; `well_conditioned` keeps both near 1, for claims that run descent.
    """
    d, n = int(rng.integers(2, 17)), int(rng.integers(2, 17))
    rank = int(rng.integers(1, min(d, n) + 1))
    spectrum = 10 ** rng.uniform(-0.2, 0.2, rank) if well_conditioned else 10 ** rng.uniform(-2, 1, rank)
    images = (_orthonormal(rng, d, rank) * spectrum) @ _orthonormal(rng, n, rank).T
    return paired(rng, images, rank, well_conditioned=well_conditioned)


def paired(
    rng: Generator, images: Float[ndarray, "d n"], rank: int, *, well_conditioned: bool = False
) -> Instance:
    """Images of a known rank with random texts, maps and λ."""
    (d, n), p, e = images.shape, int(rng.integers(1, 7)), int(rng.integers(1, 9))
    strength = 10 ** rng.uniform(-0.5, 0.5) if well_conditioned else 10 ** rng.uniform(-3, 3)
    return Instance(
        images=images,
        texts=rng.normal(size=(e, n)),
        image_map=rng.normal(size=(p, d)),
        text_map=rng.normal(size=(p, e)) / n,
        strength=float(strength),
        rank=rank,
    )


def kernel(rng: Generator, steps: int) -> Kernel:
    """A random kernel of any family and shape."""
    shape = float(rng.uniform(0.2, 2))
    kinds: list[Kernel] = [
        Beta(shape),
        Beta(shape, float(rng.uniform(0.2, 2))),
        Uniform(),
        Early(shape),
        Late(shape),
        Triangular(float(rng.uniform(0.1, 0.9))),
        Exponential(float(rng.uniform(0.5, 0.99)), steps),
    ]
    return kinds[rng.integers(len(kinds))]


def average(rng: Generator, steps: int, *, every: int | None = None) -> WMA:
    """A random kernel-weighted teacher that moves at least once, with either clock."""
    if every is None:
        every = int(rng.integers(1, min(5, steps) + 1))
    return WMA(kernel(rng, steps), every=every, clock=CLOCKS[rng.integers(2)])


def policy(rng: Generator, steps: int) -> Teacher:
    """A random teacher policy of any kind."""
    every = int(rng.integers(1, min(5, steps) + 1))
    kinds: list[Teacher] = [
        average(rng, steps),
        average(rng, steps, every=1),
        EMA(momentum=float(rng.uniform(0.1, 0.99)), every=every),
        EMA(horizon=float(rng.uniform(0.02, 1)), every=every),
        EMA(momentum=0.9, ramp=0.5),
        Frozen(),
    ]
    return kinds[rng.integers(len(kinds))]


def duration(rng: Generator) -> int:
    """A random number of steps, 1 to 40."""
    return int(rng.integers(1, 41))


def _orthonormal(rng: Generator, size: int, rank: int) -> Float[ndarray, "size rank"]:
    return np.linalg.qr(rng.normal(size=(size, rank)))[0]
