"""LoRA: low-rank updates of the linear layers of both towers, W + (α/r) B A (arXiv 2106.09685).

In towers whose blocks have no linear layer, convolutions are adapted: their weights are matrices with a row for each
channel of the output. A is then a convolution of the same kernel, and B one of 1 × 1.

The factors are parameters of the layer itself, so that pretrained weights keep their names and are never written.
Training does not use peft, whose layer for packed attention (`nn.MultiheadAttention`) adds the update to the weights
and subtracts it in every forward, with rounding, and that of the output projection twice (huggingface/peft pull
request 3774). `tracer.models.peft_export` writes its format.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import conv2d, dropout, linear
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from tracer.core.errors import NotAdaptable
from tracer.core.weights import Weights
from tracer.models.attention import attend, computes_otherwise, own_form, packed
from tracer.models.student import Student
from tracer.models.trainable import freeze_towers

Layers = Literal["all", "attention", "mlp"]
Factors = Literal["auto", "B", "AB"]
ATTENTION = ("attn", "attention", "qkv", "token_mixer")  # in the names of attention layers
A, B = "lora_A", "lora_B"
# Tables of numbers that are looked up or added, not multiplied with an input.
NO_MATRIX = re.compile(r"table|bias|pos|token|emb|scale|gamma|query|latent|probe|prompt")


@dataclass(frozen=True)
class LoRA:
    """B A of `rank` r, scaled by `alpha`/r, with `dropout` of its input, on linear layers inside the blocks.

    Of packed attention, queries, keys and values are adapted, and the output projection is not. In a convolutional
    tower it is convolutions that are not grouped, and so not the depthwise ones, which have few weights.

    It adapts the layers that the method would have trained; the temperature and the head train as before. `factors`
    are those that train: "AB", or "B" only (LoRA-FA, arXiv 2308.03303). "auto" trains B only where weights are
    averaged, because the mean of B A is then the mean of B times A; else both. By default alpha is r.
    """

    rank: int = 8
    alpha: float | None = None
    dropout: float = 0.0
    layers: Layers = "all"
    factors: Factors = "auto"

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise ValueError(f"rank {self.rank}: expected a whole number, at least 1")
        object.__setattr__(self, "alpha", float(self.rank if self.alpha is None else self.alpha))
        if not 0 < self.scaling < math.inf:
            raise ValueError(f"alpha {self.alpha}: expected a positive number")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout {self.dropout}: expected a number from 0 to below 1")

    def __str__(self) -> str:
        return "lora:" + ",".join(f"{name}={value}" for name, value in asdict(self).items())

    @property
    def scaling(self) -> float:
        assert self.alpha is not None
        return self.alpha / self.rank

    def prepare(self, student: Student) -> None:
        """Leave a pretrained model as it is: its weights keep their names and shapes."""

    def targets(self, student: Student) -> dict[str, nn.Module]:
        """The layers with trainable weights that are adapted, by name.

        Raises NotAdaptable if a tower that is trained has none, if a matrix of its blocks is in a layer that is not
        known, which would stay as it is, or if no update of a layer can have this rank.
        """
        names = {id(module): name for name, module in student.named_modules()}
        targets: dict[str, nn.Module] = {}
        for tower in student.towers:
            own = student.text_parameters if tower.kind == "text" else [*tower.module.parameters()]
            blocks = list(tower.blocks.values())
            trained = [block for block in blocks if any(p.requires_grad for p in block.parameters())]
            suited = [layer for block in trained for layer in self._layers(block)]
            for module, reason in (each for block in trained for each in self._unknown(block)):
                raise NotAdaptable(
                    f"--adapter lora: {names[id(module)]} of {student.name}, a {type(module).__name__}, {reason}; "
                    "leave out --adapter, or use --tune last-1, which train its own weights"
                )
            layers = [layer for layer in suited if adapted_weight(layer).requires_grad]
            layers = [layer for layer in layers if not isinstance(layer, nn.Conv2d)] or layers
            trains = any(p.requires_grad for p in own)
            if not layers and trains and (trained or not blocks):
                advice = "use --tune norms or last-1, which train its own weights"
                if suited:
                    advice = (
                        "no matrix of it is trained: leave out --tune, give one of whole blocks such as last-1, "
                        "or leave out --adapter"
                    )
                raise NotAdaptable(
                    f"--adapter lora: nothing to adapt in the {tower.kind} tower of {student.name}; {advice}"
                )
            targets |= {names[id(layer)]: layer for layer in layers}
        largest = max((min(adapted_weight(layer).flatten(1).shape) for layer in targets.values()), default=0)
        if targets and self.rank > largest:
            raise NotAdaptable(
                f"--adapter lora: rank {self.rank} is above that of every adapted weight of {student.name}: "
                f"give {largest} or less"
            )
        return targets

    def _chosen(self, block: nn.Module) -> Iterator[nn.Module]:
        """The modules of a block that hold parameters and are of the kind that `layers` names."""
        for name, module in block.named_modules():
            kind = "attention" if any(part in name.lower() for part in ATTENTION) else "mlp"
            if self.layers in ("all", kind):
                yield module

    def _layers(self, block: nn.Module) -> list[nn.Module]:
        """The layers of a block that can be adapted, trained or not."""
        ends = {id(module.out_proj) for module in block.modules() if packed(module)}
        return [layer for layer in self._chosen(block) if _form(layer) is not None and id(layer) not in ends]

    def _unknown(self, block: nn.Module) -> Iterator[tuple[nn.Module, str]]:
        """Layers of a block with a matrix that nothing here can adapt, though it may be one of the largest; and why."""
        for module in self._chosen(block):
            if own_form(module) and not isinstance(module, LoRAOwnAttention) and computes_otherwise(module):
                yield module, "computes attention in a way that is not known here"
            if _form(module) is not None or isinstance(module, LEFT_OUT):
                continue
            for name, p in module.named_parameters(recurse=False):
                if p.ndim == 2 and min(p.shape) > 1 and p.requires_grad and not NO_MATRIX.search(name):
                    yield module, f"has a matrix, {name}, and is of no kind that can be adapted"

    def attach(self, student: Student, *, averaged: bool, seed: int) -> None:
        """Add factors, B = 0, to the layers that are trained, and freeze all else but temperature and head.

        A student of which only the head is trained stays as it is.
        """
        if not any(p.requires_grad for p in student.clip.parameters()):
            return
        targets: dict[str, Any] = self.targets(student)
        freeze_towers(student)
        generator = torch.Generator().manual_seed(seed)
        train_a = self.factors == "AB" or (self.factors == "auto" and not averaged)
        for layer in targets.values():
            weight = adapted_weight(layer)
            rows, columns = weight.flatten(1).shape
            bound = 1 / math.sqrt(columns)  # the initialisation of nn.Linear, as peft's
            initial = torch.empty(self.rank, columns).uniform_(-bound, bound, generator=generator)
            layer.lora_A = nn.Parameter(initial.to(weight), requires_grad=train_a)
            layer.lora_B = nn.Parameter(weight.new_zeros(rows, self.rank))
            layer.scaling, layer.lora_dropout = self.scaling, self.dropout
            layer.__class__ = _form(layer)

    def merge(self, weights: Mapping[str, Tensor]) -> Weights:
        """Weights without factors: each is W + (α/r) B A."""
        merged = {name: tensor for name, tensor in weights.items() if not is_factor(name)}
        for name, tensor in weights.items():
            if name.endswith(B):
                update = self.scaling * tensor @ weights[name.removesuffix(B) + A]
                adapted = weight_name(name.removesuffix(f".{B}"), merged)
                merged[adapted] = merged[adapted] + update.view_as(merged[adapted])
        return merged


def is_factor(name: str) -> bool:
    """Whether a tensor of this name is a factor of an adapter."""
    return name.endswith((A, B))


def adapted_weight(layer: Any) -> Tensor:
    """The weight of a layer that factors are added to: of packed attention, that of queries, keys and values."""
    return layer.in_proj_weight if packed(layer) else layer.weight


def weight_name(layer: str, weights: Mapping[str, Tensor]) -> str:
    """The name of the weight of a layer that is adapted."""
    return f"{layer}.in_proj_weight" if f"{layer}.in_proj_weight" in weights else f"{layer}.weight"


def _update(layer: Any, x: Float[Tensor, "*n i"], rows: slice = slice(None)) -> Float[Tensor, "*n o"]:
    """(α/r) B A x, of some rows of B."""
    if layer.lora_dropout:
        x = dropout(x, layer.lora_dropout, layer.training)
    return linear(linear(x, layer.lora_A) * layer.scaling, layer.lora_B[rows])


class LoRALinear(nn.Linear):
    """A linear layer with factors. The class of an existing layer is set to it; it is not constructed."""

    def forward(self, input: Float[Tensor, "*n i"]) -> Float[Tensor, "*n o"]:
        return super().forward(input).add_(_update(self, input))  # in place: outputs are large


class LoRAConvolution(nn.Conv2d):
    """A convolution with factors, both matrices; the class of an existing layer is set to it."""

    def forward(self, input: Float[Tensor, "n i h w"]) -> Float[Tensor, "n o _ _"]:
        layer: Any = self  # with the attributes that `LoRA.attach` has set
        output, x = super().forward(input), dropout(input, layer.lora_dropout, self.training)
        kernel = layer.lora_A.unflatten(1, self.weight.shape[1:])
        x = conv2d(x, kernel, None, self.stride, self.padding, self.dilation)
        return output.add_(conv2d(x * layer.scaling, layer.lora_B[..., None, None]))


class LoRAAttention(nn.MultiheadAttention):
    """Attention whose packed input projection has factors, and whose keys and values have one input.

    The update is computed from the input, not added to the weights: a gradient of the frozen weights is never needed.
    """

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = False,
        attn_mask: Tensor | None = None,
        **unused: Any,
    ) -> tuple[Tensor, None]:
        del unused
        if need_weights or key_padding_mask is not None or key is not value:
            raise NotImplementedError(
                "attention with an adapter has neither padding masks nor returned weights nor values of their own"
            )
        query_first = query if self.batch_first else query.transpose(0, 1)
        key_first = query_first if query is key else key if self.batch_first else key.transpose(0, 1)
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            attn_mask = ~attn_mask  # there, True takes part
        output = attend(self, partial(_projected, self), query_first, key_first, attn_mask)
        return output if self.batch_first else output.transpose(0, 1), None


class LoRAOwnAttention(nn.Module):
    """The same for open_clip's form of packed attention: a base, before the class of the layer, of what it becomes."""

    def forward(
        self, x: Tensor, k_x: Tensor | None = None, v_x: Tensor | None = None, attn_mask: Tensor | None = None
    ) -> Tensor:
        key, value = (x if each is None else each for each in (k_x, v_x))
        if key is not value or (attn_mask is not None and attn_mask.dtype == torch.bool):
            raise NotImplementedError(
                "attention with an adapter has neither values of their own nor masks of truth values"
            )
        return attend(self, partial(_projected, self), x, key, attn_mask)


# Matrices in blocks that are not adapted: lookups, and convolutions of other kinds than `LoRA` names.
LEFT_OUT = (nn.Embedding, nn.Conv2d, NonDynamicallyQuantizableLinear)


def _form(layer: nn.Module) -> type[nn.Module] | None:
    """The class with factors of a layer that can be adapted; None for others, such as one that computes otherwise."""
    kind = type(layer)
    if isinstance(layer, nn.MultiheadAttention):
        known = kind.forward in (nn.MultiheadAttention.forward, LoRAAttention.forward)
        return LoRAAttention if known and packed(layer) else None
    if own_form(layer):
        return (
            kind
            if issubclass(kind, LoRAOwnAttention)
            else type("LoRA" + kind.__name__, (LoRAOwnAttention, kind), {})
        )
    if isinstance(layer, nn.Linear) and not isinstance(layer, NonDynamicallyQuantizableLinear):
        return LoRALinear if kind.forward in (nn.Linear.forward, LoRALinear.forward) else None
    if kind in (nn.Conv2d, LoRAConvolution) and layer.groups == 1 and layer.padding_mode == "zeros":
        return LoRAConvolution  # timm's subclasses pad in their own ways
    return None


def _projected(layer: Any, x: Tensor, rows: slice) -> Tensor:
    """Rows of queries, keys and values, with their update."""
    weight, bias = layer.in_proj_weight, layer.in_proj_bias
    return linear(x, weight[rows], None if bias is None else bias[rows]).add_(_update(layer, x, rows))
