"""The parts of a tower, for every tower of open_clip: its blocks or stages, the layers before them, and its end."""

from __future__ import annotations

import math
import re
from typing import Any, Literal, NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from tracer.core.errors import UserError
from tracer.models.text import text_tower

# Modules that hold the blocks or stages: open_clip's own transformer, timm's models, text towers of Hugging Face
# (relatives of BERT, T5 and M2M), and open_clip's newest text tower.
CONTAINERS = {
    "transformer.resblocks": "block",
    "trunk.blocks": "block",
    "trunk.stages": "stage",
    "trunk.layers": "stage",
    "transformer.encoder.layer": "block",
    "transformer.block": "block",
    "transformer.layers": "block",
    "blocks": "block",
}
RESNET = ("layer1", "layer2", "layer3", "layer4")
PATCHES = ("conv1", "trunk.patch_embed", "trunk.stem")  # open_clip's transformer, timm's, timm's ConvNeXt
# Layers before the first block and after the last, by their name in a tower; of timm's towers see `input_parameters`.
INPUT_LAYERS = re.compile(
    r"(conv[123]|bn[123]|class_embedding|positional_embedding|token_embedding|cls_emb|reg_tokens|ln_pre|norm_pre"
    r"|transformer\.(embeddings|embed_tokens|prompt)|trunk\.(cls_token|reg_token|pos_embed))(\.|$)"
)
END_LAYERS = re.compile(
    r"(ln_post|ln_final|proj|text_projection|attn_pool|attn_pool_contrastive|attnpool|pool"
    r"|transformer\.(pooler|layer_norm|final_layer_norm))(\.|$)"
)
PROJECTIONS = {
    "image": ("proj", "attnpool.c_proj", "head.proj", "trunk.head", "trunk.head.fc"),
    "text": ("text_projection", "proj"),
}

Order = Literal["first", "second", "last"]  # [n, l, d] or [n, c, h, w]; [l, n, d]; [n, h, w, c]


class Tower(NamedTuple):
    """The image or the text tower of a model, whatever library it is from."""

    kind: Literal["image", "text"]
    module: nn.Module

    @property
    def blocks(self) -> dict[str, nn.Module]:
        """Blocks or stages in order, by name; empty for a tower of another kind."""
        modules = dict(self.module.named_modules())
        if all(name in modules for name in RESNET):
            return {f"stage {i}": modules[name] for i, name in enumerate(RESNET, 1)}
        for container, kind in CONTAINERS.items():
            if container in modules:
                return {f"{kind} {i}": block for i, block in enumerate(modules[container].children(), 1)}
        return {}

    @property
    def input_parameters(self) -> list[nn.Parameter]:
        """The parameters before the first block. In timm's towers, modules come in the order in which they compute."""
        trunk = [name for name, _ in getattr(self.module, "trunk", nn.Module()).named_children()]
        container = next((trunk.index(name) for name in ("blocks", "stages", "layers") if name in trunk), 0)
        first = tuple(f"trunk.{name}." for name in trunk[:container])
        parameters = self.module.named_parameters()
        return [p for name, p in parameters if name.startswith(first) or INPUT_LAYERS.match(name)]

    @property
    def unplaced(self) -> list[str]:
        """Names of parameters that are neither before, in nor after the blocks, as far as is known here.

        A tower without blocks has none: nothing is said of its parameters.
        """
        blocks = self.blocks.values()
        if not blocks or getattr(self.module, "trunk", None) is not None:
            return []
        placed = {
            id(p) for p in (*self.input_parameters, *(p for block in blocks for p in block.parameters()))
        }
        others = (
            () if self.kind == "image" else ("visual.", "logit_")
        )  # in the original CLIP, beside its text tower
        named = self.module.named_parameters()
        return [
            n
            for n, p in named
            if id(p) not in placed and not n.startswith(others) and not END_LAYERS.match(n)
        ]

    @property
    def patch_embedding(self) -> nn.Module | None:
        """The layer that makes patches into tokens; None for ResNets and towers of another kind."""
        modules = dict(self.module.named_modules())
        if RESNET[0] in modules:
            return None
        return next((modules[name] for name in PATCHES if name in modules), None)

    @property
    def projection(self) -> Float[Tensor, "v d"] | None:
        """The matrix with which the tower ends, with the shared embedding as columns; None if there is none."""
        for path in PROJECTIONS[self.kind]:
            part: Any = self.module
            for name in path.split("."):
                part = getattr(part, name, None)
            if isinstance(part, nn.Linear):
                return part.weight.T
            if isinstance(part, Tensor) and part.ndim == 2:
                return part
        return None

    @property
    def order(self) -> Order:
        """The order of dimensions of the outputs of the blocks."""
        if not getattr(getattr(self.module, "transformer", None), "batch_first", True):
            return "second"
        return (
            "last" if getattr(getattr(self.module, "trunk", None), "output_fmt", None) == "NHWC" else "first"
        )

    def five_taps(
        self, pixels: Float[Tensor, "n 3 h w"]
    ) -> tuple[Float[Tensor, "n d"], tuple[Float[Tensor, "n l w"], ...]]:
        """Image features, and all tokens before the first block and after each quarter of the blocks.

        These are the taps of LDIFS: for twelve blocks, before the first and after the 3rd, 6th, 9th and 12th.
        """
        blocks = list(self.blocks.values())
        if not blocks:
            raise UserError(
                "this model's image tower has no blocks whose tokens could be compared: use flyp or ft"
            )
        taps: dict[int, Any] = {}

        def keep(
            index: int,
        ) -> Any:  # only kept here: work inside a checkpointed block would have to be repeated
            return lambda module, inputs, output=None: taps.update(
                {index: inputs if output is None else output}
            )

        handles = [blocks[0].register_forward_pre_hook(keep(0))]
        for quarter in (1, 2, 3, 4):
            index = math.ceil(len(blocks) * quarter / 4)
            handles.append(blocks[index - 1].register_forward_hook(keep(index)))
        try:
            output = self.module.forward(pixels)
        finally:
            for handle in handles:
                handle.remove()
        features = output[0] if isinstance(output, tuple | list) else output
        return features, tuple(as_tokens(taps[index], self.order) for index in sorted(taps))


def towers_of(clip: Any) -> tuple[Tower, Tower]:
    """The image and the text tower of an open_clip model."""
    return Tower("image", clip.visual), Tower("text", text_tower(clip))


def without_projection(clip: Any) -> list[str]:
    """The towers, "image" and "text", that end without a linear projection."""
    return [tower.kind for tower in towers_of(clip) if tower.projection is None]


def as_tokens(output: Any, order: Order = "first") -> Float[Tensor, "n l d"]:
    """A block's output as tokens; the positions of a feature map are its tokens, a single vector is one."""
    value: Tensor = output[0] if isinstance(output, tuple | list) else output
    if value.ndim == 4:
        return value.flatten(1, 2) if order == "last" else value.flatten(2).transpose(1, 2)
    if value.ndim == 3:
        return value.transpose(0, 1) if order == "second" else value
    return value[:, None]
