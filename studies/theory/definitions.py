"""The weights of a kernel-weighted teacher by definition, computed from the kernel without the policy."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from tracer.core.teachers import WMA


def interval_masses(teacher: WMA, steps: int) -> Float[ndarray, " times"]:
    """The kernel mass on iterate k by the definition, 0 where the teacher does not move.

    α_k = κ((k + ½) / (T + 1)) is written out here, independently of the policy under test. With the progress clock the
    teacher moves after steps N, 2N, … and T, and a move carries all α since the last one. With the clock of the
    released code it moves after steps 1, N + 1, … and T, the j-th move carries α_j, whatever the interval, and the
    rest of the kernel is never used.
    """
    alpha = [teacher.kernel((k + 0.5) / (steps + 1)) for k in range(steps + 1)]
    masses = np.zeros(steps + 1)
    masses[0] = alpha[0]
    first = teacher.every if teacher.clock == "progress" else 1
    ends = sorted({*range(first, steps + 1, teacher.every), steps})
    for moves, (last, k) in enumerate(pairwise([0, *ends]), start=1):
        masses[k] = math.fsum(alpha[last + 1 : k + 1]) if teacher.clock == "progress" else alpha[moves]
    return masses


def defined_moves(teacher: WMA, steps: int) -> Float[ndarray, " times"]:
    """ω_t = (mass on iterate t) / (mass so far), by the definition."""
    masses = interval_masses(teacher, steps)
    return masses / np.cumsum(masses)
