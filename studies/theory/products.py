"""Record the inputs that a forward pass multiplies by each matrix parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

MATMULS = frozenset({torch.matmul, torch.mm, torch.Tensor.matmul, torch.Tensor.mm, torch.Tensor.__matmul__})
HEADS = ("q", "k", "v")


class Product(NamedTuple):
    """A use of a matrix parameter: W in x Wᵀ or, flipped, M in x M; `part` is q, k or v of a packed in-projection."""

    parameter: str
    flipped: bool = False
    part: str = ""

    @property
    def layer(self) -> str:
        name = self.parameter.removesuffix("weight").rstrip("._") or self.parameter
        return f"{name}.{self.part}" if self.part else name

    def matrix(self, parameters: Mapping[str, Tensor]) -> Float[Tensor, "out in"]:
        """The parameter as the map from inputs to outputs, in float64."""
        value = parameters[self.parameter].detach().to("cpu", torch.float64)
        if self.part:
            value = value.chunk(3)[HEADS.index(self.part)]
        return value.T if self.flipped else value


Callback = Callable[[Product, Float[Tensor, "m d"]], None]


class _InputRecorder(TorchFunctionMode):
    """Passes the inputs of every product with a known parameter to `callback`.

    A function mode rather than module hooks: CLIP's projections are bare parameters, and attention reads the
    weights of its sub-modules without calling them.
    """

    def __init__(self, names: Mapping[int, str], callback: Callback) -> None:
        super().__init__()
        self.names = names
        self.callback = callback

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is functional.linear:
            self._record(args[0], args[1] if len(args) > 1 else kwargs["weight"])
        elif func in MATMULS and len(args) > 1:
            self._record(args[0], args[1], flipped=True)
        elif func is functional.multi_head_attention_forward:
            self._record_attention(args, kwargs)
        return func(*args, **kwargs)

    def _record(self, inputs: Tensor, weight: object, *, flipped: bool = False, part: str = "") -> None:
        if id(weight) in self.names and isinstance(weight, Tensor) and weight.dim() == 2:
            product = Product(self.names[id(weight)], flipped, part)
            self.callback(product, inputs.detach().reshape(-1, inputs.shape[-1]))

    def _record_attention(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        query, key, value, width, packed, out = *args[:4], args[5], args[11]
        if kwargs.get("use_separate_proj_weight"):
            for head, inputs in zip(HEADS, (query, key, value), strict=True):
                self._record(inputs, kwargs[f"{head}_proj_weight"])
        elif query is key is value:
            self._record(query, packed)
        else:
            for head, inputs in zip(HEADS, (query, key, value), strict=True):
                self._record(inputs, packed, part=head)
        # With an identity as its out-projection, attention returns the input of the out-projection.
        identity = torch.eye(width, dtype=out.dtype, device=out.device)
        bare: Any = (*args[:11], identity, None, *args[13:])
        self._record(functional.multi_head_attention_forward(*bare, **kwargs)[0], out)


@contextmanager
def record_inputs(model: nn.Module, callback: Callback) -> Iterator[None]:
    """Call `callback(product, inputs)` for each product of the forward passes inside.

    They run without gradient in evaluation mode; the model's modes are restored afterwards.
    """
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad(), _InputRecorder(names, callback):
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode
