"""Random instances on which the theory is put to the test, and how far apart two answers are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.random import Generator

from tracer.kernels import Beta, Early, Exponential, Kernel, Late, Triangular, Uniform
from tracer.teachers import EMA, WMA, Frozen, Teacher
from tracer.theory.problem import Problem, contrastive

CLOCKS: tuple[Literal["progress", "updates"], ...] = ("progress", "updates")


@dataclass(frozen=True)
class Instance:
    """Pairs, two pretrained maps and a penalty. `rank` is the rank that the images were made with."""

    images: Float[ndarray, "d n"]
    texts: Float[ndarray, "e n"]
    image_map: Float[ndarray, "p d"]
    text_map: Float[ndarray, "p e"]
    strength: float
    rank: int

    @cached_property
    def problem(self) -> Problem:
        return contrastive(self.images, self.texts, self.image_map, self.text_map)


def instance(rng: Generator, *, tame: bool = False) -> Instance:
    """Any shapes and any rank; tall and wide, full and deficient.

    Singular values span three decades and λ six; `tame` keeps both near 1, for claims that run descent.
    """
    d, n = int(rng.integers(2, 17)), int(rng.integers(2, 17))
    rank = int(rng.integers(1, min(d, n) + 1))
    spectrum = 10 ** rng.uniform(-0.2, 0.2, rank) if tame else 10 ** rng.uniform(-2, 1, rank)
    images = (_orthonormal(rng, d, rank) * spectrum) @ _orthonormal(rng, n, rank).T
    return paired(rng, images, rank, tame=tame)


def paired(rng: Generator, images: Float[ndarray, "d n"], rank: int, *, tame: bool = False) -> Instance:
    """Images of a known rank with random texts, maps and λ."""
    (d, n), p, e = images.shape, int(rng.integers(1, 7)), int(rng.integers(1, 9))
    strength = 10 ** rng.uniform(-0.5, 0.5) if tame else 10 ** rng.uniform(-3, 3)
    return Instance(
        images=images,
        texts=rng.normal(size=(e, n)),
        image_map=rng.normal(size=(p, d)),
        text_map=rng.normal(size=(p, e)) / n,
        strength=float(strength),
        rank=rank,
    )


def kernel(rng: Generator, steps: int) -> Kernel:
    """A kernel of any kind and shape."""
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
    """A kernel-weighted teacher that moves every so often, at least once, by either clock."""
    if every is None:
        every = int(rng.integers(1, min(5, steps) + 1))
    return WMA(kernel(rng, steps), every=every, clock=CLOCKS[rng.integers(2)])


def policy(rng: Generator, steps: int) -> Teacher:
    """Any teacher at all."""
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
    """A short number of steps."""
    return int(rng.integers(1, 41))


def interval_masses(teacher: WMA, steps: int) -> Float[ndarray, " times"]:
    """The kernel mass on iterate k by the definition, 0 where the teacher does not move.

    α_k = κ((k + ½) / (T + 1)) is written out here, so that a policy that gets it wrong has a witness. By the
    clock of progress a move carries all α since the last one; by the clock of the released code the j-th move
    carries α_j, whatever the interval, and what is left of the kernel is never read.
    """
    alpha = [teacher.kernel((k + 0.5) / (steps + 1)) for k in range(steps + 1)]
    masses = np.zeros(steps + 1)
    masses[0] = alpha[0]
    for moves, k in enumerate(range(teacher.every, steps + 1, teacher.every), start=1):
        since = alpha[k - teacher.every + 1 : k + 1]
        masses[k] = math.fsum(since) if teacher.clock == "progress" else alpha[moves]
    return masses


def defined_moves(teacher: WMA, steps: int) -> Float[ndarray, " times"]:
    """ω_t = (mass on iterate t) / (mass so far), by the definition."""
    masses = interval_masses(teacher, steps)
    return masses / np.cumsum(masses)


def apart(ours: ndarray | float, theirs: ndarray | float, scale: float = 0.0) -> float:
    """The distance of two answers relative to the larger of them, or to `scale` if that is larger still."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    unit = worst(np.linalg.norm(ours), np.linalg.norm(theirs), scale)
    return float(np.linalg.norm(ours - theirs)) / unit if unit != 0 else 0.0


def excess(small: ndarray | float, large: ndarray | float, scale: float | None = None) -> float:
    """By how much small ≤ large fails at worst, relative to `scale` or to the largest value of `large`."""
    small, large = np.asarray(small, dtype=float), np.asarray(large, dtype=float)
    unit = float(np.abs(large).max()) if scale is None else scale
    over = worst(0.0, (small - large).max())
    return over / unit if unit != 0 else over


def worst(*violations: float | np.floating) -> float:
    """The largest; unlike with `max`, a NaN is never lost."""
    return float(np.array(violations, dtype=float).max())


def _orthonormal(rng: Generator, size: int, rank: int) -> Float[ndarray, "size rank"]:
    return np.linalg.qr(rng.normal(size=(size, rank)))[0]
