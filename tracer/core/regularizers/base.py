"""A regularizer is a policy; fastened to parameters and to the weights they are held to, it becomes a hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Protocol

from torch import Tensor


class Attached(Protocol):
    """Acts twice a step: `pull` after backward may edit gradients, `clamp` after the update the weights."""

    def pull(self) -> None: ...
    def clamp(self, lr: float) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Regularizer(Protocol):
    """How parameters are held to their anchors: the pretrained weights, or where a head began."""

    copies: ClassVar[int]  # how many more copies of the weights it keeps

    def attach(self, parameters: Mapping[str, Tensor], anchors: Mapping[str, Tensor]) -> Attached: ...


class Pair(NamedTuple):
    """A parameter and what it is held to."""

    name: str
    parameter: Tensor
    anchor: Tensor


def pairs(parameters: Mapping[str, Tensor], anchors: Mapping[str, Tensor], *, head: bool) -> list[Pair]:
    """Every parameter with its anchor; without those of a classification head if `head` is false."""
    held = [name for name in parameters if head or not name.startswith("head.")]
    return [Pair(name, parameters[name], anchors[name]) for name in held]
