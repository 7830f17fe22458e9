"""How far apart two ways to compute the same numbers may be: one rule, instead of a figure that some processor met.

Processors add in different orders and round fused products once instead of twice, so two ways never agree to the last
bit everywhere. Each of n roundings in a row is off by at most half of `eps`, up or down as if by chance; together they
are off by more than λ·√n·eps/2 with a probability below 2·exp(−λ²/2) (Higham and Mary, 2019), two ways by twice that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from tracer.training import optim

LAMBDA = 4


def bound(sums: float, size: float = 1.0, dtype: torch.dtype = torch.float64) -> float:
    """The largest distance that rounding explains.

    Args:
        sums: How many numbers are added one behind the other on the way, in all layers; see `length`.
        size: The largest number on the way that is not made smaller again.
        dtype: The type that is computed with.
    """
    return LAMBDA * math.sqrt(max(1.0, sums)) * torch.finfo(dtype).eps * size


def same(
    one: Any, other: Any, sums: float, *, size: float | None = None, dtype: torch.dtype | None = None
) -> None:
    """Assert that two results differ by rounding at most.

    Results are numbers, arrays, tensors, or sequences or mappings of these, which are one result: the largest number of
    all of them is `size`, unless it is told, and the coarsest type is `dtype`.
    """
    mine, theirs = dict(_parts(one)), dict(_parts(other))
    assert {at: part.shape for at, part in mine.items()} == {at: part.shape for at, part in theirs.items()}
    parts = [*mine.values(), *theirs.values()]
    if dtype is None:
        dtype = max((part.dtype for part in parts), key=lambda each: torch.finfo(each).eps)
    if size is None:
        size = max((float(part.abs().max()) for part in parts if part.numel()), default=0.0)
    most = bound(sums, size, dtype)
    for at, part in mine.items():
        apart = (part.double() - theirs[at].double()).abs()
        assert bool((apart <= most).all()), (
            f"{at or 'they'} differ by {apart.max():.3g}, more than {most:.3g}"
        )


def near(one: Any, other: Any, sums: float, **more: Any) -> bool:
    """Whether they are the same."""
    try:
        same(one, other, sums, **more)
    except AssertionError:
        return False
    return True


def length(model: nn.Module) -> float:
    """How many numbers a model adds one behind the other, in the products with its matrices."""
    return sum(p.numel() / len(p) for p in model.parameters() if p.ndim > 1)


@contextmanager
def smooth_steps() -> Iterator[None]:
    """Let AdamW divide by √v + 1 instead of √v + 1e-8, so that steps are as exact as gradients.

    A weight whose gradient is zero but for rounding moves by lr · rounding / 1e-8 otherwise: by anything up to lr.
    """
    with patch.object(optim, "AdamW", partial(optim.AdamW, eps=1.0)):
        yield


def _parts(result: Any, at: str = "") -> Iterator[tuple[str, Tensor]]:
    if isinstance(result, Mapping):
        for name, part in result.items():
            yield from _parts(part, f"{at}{name} ")
    elif isinstance(result, Sequence) and not all(isinstance(part, int | float) for part in result):
        for number, part in enumerate(result):
            yield from _parts(part, f"{at}{number} ")
    else:
        tensor = result.detach() if isinstance(result, Tensor) else torch.from_numpy(np.asarray(result))
        yield at, tensor if tensor.is_floating_point() else tensor.double()
