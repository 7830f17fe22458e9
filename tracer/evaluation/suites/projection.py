"""Projections of logits: from the classes of a model to those of a test set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor


class Projection(Protocol):
    """A pure function of logits, with a description for the result."""

    @property
    def description(self) -> str: ...
    def __call__(self, logits: Float[Tensor, "n k"]) -> Float[Tensor, "n j"]: ...


@dataclass(frozen=True)
class Everything:
    """All classes; logits are unchanged."""

    of: int

    @property
    def description(self) -> str:
        return f"all {self.of} classes" if self.of else "captions, no classes"

    def __call__(self, logits: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
        return checked(logits, self.of)


@dataclass(frozen=True)
class Columns:
    """A subset of the classes; the other logits are removed before softmax and argmax."""

    indices: tuple[int, ...]
    of: int

    @property
    def description(self) -> str:
        return f"logits restricted to {len(self.indices)} of {self.of} classes"

    def __call__(self, logits: Float[Tensor, "n k"]) -> Float[Tensor, "n j"]:
        return checked(logits, self.of)[:, torch.tensor(self.indices, device=logits.device)]


@dataclass(frozen=True)
class LargestOf:
    """Each class of the test set corresponds to several of the model; its logit is the largest of theirs."""

    groups: tuple[tuple[int, ...], ...]
    of: int

    def __post_init__(self) -> None:
        if not all(self.groups):
            raise ValueError("every class needs at least one column to take the largest logit of")

    @property
    def description(self) -> str:
        used = sum(map(len, self.groups))
        return (
            f"{len(self.groups)} classes, each the largest logit of its own among {used} of {self.of} columns"
        )

    def __call__(self, logits: Float[Tensor, "n k"]) -> Float[Tensor, "n j"]:
        width = max(map(len, self.groups))
        padded = [(*group, *group[:1] * (width - len(group))) for group in self.groups]
        columns = torch.tensor(padded, device=logits.device)
        return checked(logits, self.of)[:, columns].amax(dim=2)


def checked(logits: Float[Tensor, "n k"], classes: int) -> Float[Tensor, "n k"]:
    """`logits`; an error unless they have one column per class."""
    if logits.ndim != 2 or logits.shape[1] != classes:
        raise ValueError(f"logits of {classes} classes needed, not of shape {list(logits.shape)}")
    return logits
