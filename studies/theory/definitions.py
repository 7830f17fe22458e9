"""The weights of a kernel-weighted teacher by definition, computed from the kernel without the policy."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from tracer.core.teachers import WMA


def interval_masses(teacher: WMA, steps: int) -> Float[ndarray, " times"]:
    """The kernel mass on iterate k by the definition, 0 where the teacher does not move.

    α_k = κ((k + ½) / (T + 1)) is written out here, independently of the policy under test. With the progress clock a
    move carries all α since the last one; with the clock of the released code the j-th move carries α_j, whatever the
    interval, and the rest of the kernel is never used.
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
