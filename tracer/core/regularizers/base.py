"""The two interfaces of a regularizer.

A `Regularizer` is a policy, a frozen dataclass of hyper-parameters. `attach(parameters, anchors)` returns an `Attached`
regularizer, which acts twice a step: before the optimiser on the gradients, after it on the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Protocol

from torch import Tensor


class Attached(Protocol):
    """`pull` runs after backward and may edit gradients; `clamp` runs after the optimiser and may edit weights.

    A subclass has no state to save unless it says so.
    """

    def pull(self) -> None: ...
    def clamp(self, lr: float) -> None: ...

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        del state


class Regularizer(Protocol):
    """Keeps parameters near their anchors: the pretrained weights, or the initial weights of a head."""

    copies: ClassVar[int]  # copies of the weights that it keeps in memory

    def attach(self, parameters: Mapping[str, Tensor], anchors: Mapping[str, Tensor]) -> Attached: ...


class Pair(NamedTuple):
    """A parameter and its anchor."""

    name: str
    parameter: Tensor
    anchor: Tensor


def pairs(parameters: Mapping[str, Tensor], anchors: Mapping[str, Tensor], *, head: bool) -> list[Pair]:
    """The parameters with their anchors; those of a classification head only if `head` is true."""
    names = [name for name in parameters if head or not name.startswith("head.")]
    return [Pair(name, parameters[name], anchors[name]) for name in names]
