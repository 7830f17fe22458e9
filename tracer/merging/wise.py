"""WiSE-FT: linear interpolation between pretrained and finetuned weights."""

from __future__ import annotations

import math

import torch

from tracer.core.errors import UserError
from tracer.core.weights import Weights

IMAGE_TOWER = "clip.visual."  # which PAINT interpolates
MAX_VALUES = 1000  # of a sweep; each is evaluated


def interpolate(start: Weights, end: Weights, alpha: float, prefix: str = "") -> Weights:
    """θ_α = (1−α) θ₀ + α θ, with the log-temperature and the head; weights without this prefix stay at θ₀.

    α = 0 and 1 return `start` and `end` bit for bit. Integer buffers are those of `end` unless α is 0. Reference:
    WiSE-FT (arXiv 2109.01903); on the image tower alone, PAINT (arXiv 2208.05592).
    """
    merged = {}
    for name, origin in start.items():
        if not name.startswith(prefix):
            merged[name] = origin.clone()
        elif origin.is_floating_point():
            merged[name] = torch.lerp(origin, end[name], alpha)
        else:
            merged[name] = (origin if alpha == 0 else end[name]).clone()
    return merged


def alphas(spelling: str, *, extrapolate: bool = False) -> tuple[float, ...]:
    """One α, or a sweep start:stop:step with both ends included, such as "0:1:0.1"."""
    try:
        numbers = [float(part) for part in spelling.split(":")]
        if len(numbers) == 3:
            start, stop, step = numbers
            count = math.floor((stop - start) / step + 1e-9)
            if count > MAX_VALUES:
                raise UserError(
                    f"the sweep {spelling!r} has {count} values: at most {MAX_VALUES} can be tried"
                )
            numbers = [round(start + index * step, 10) for index in range(count + 1)]
            if numbers and numbers[-1] != round(stop, 10):  # the step does not divide the range
                numbers.append(stop)
        elif len(numbers) != 1:
            raise ValueError
    except (ValueError, ZeroDivisionError, OverflowError):
        raise UserError(f"α {spelling!r} is neither a number nor a sweep such as 0:1:0.1") from None
    if not numbers:
        raise UserError(f"the sweep {spelling!r} is empty: write start:stop:step, such as 0:1:0.1")
    for alpha in numbers:
        if not (extrapolate or 0 <= alpha <= 1) or alpha - alpha != 0:
            raise UserError(f"α {alpha:g} is outside [0, 1]: --extrapolate (extrapolate=True) allows it")
    return tuple(numbers)
