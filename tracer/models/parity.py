"""Whether an exported model computes what the model here computes, on sample images and texts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from tracer.core.errors import UserError

TOLERANCE = 1e-4  # of unit embeddings, and relative to the largest value of other outputs
TEXTS = ["A photo of a small red bird.", "two dogs, one cat", "a"]  # unlike in length, capitals and signs


def sample_pixels(height: int, width: int) -> Float[Tensor, "n 3 height width"]:
    """Normalised pixels of noise, always the same, as many images as there are texts."""
    return torch.randn(len(TEXTS), 3, height, width, generator=torch.Generator().manual_seed(0))


def difference(own: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    """The largest difference of two lists of outputs, each relative to its largest value if that is more than 1.

    NaN counts as infinitely different.
    """
    largest = 0.0
    for mine, other in zip(own, theirs, strict=True):
        a, b = mine.detach().cpu().double().squeeze(), other.detach().cpu().double().squeeze()
        gap = float((a - b).abs().max() / max(1.0, float(a.abs().max())))
        largest = max(largest, gap if gap == gap else float("inf"))
    return largest


def check_parity(largest: float, form: str) -> None:
    """Raise UserError if an export differs by more than the tolerance."""
    if not largest <= TOLERANCE:
        raise UserError(
            f"this model cannot be exported as {form}: its embeddings there differ by {largest:.1e}, more than "
            f"{TOLERANCE:.0e}"
        )
