"""Prompts: learned tokens beside the input of both towers (VPT, arXiv 2203.12119; CoOp, arXiv 2109.01134).

They join the sequence before the first block of a tower and leave it after the last one. An image and its prompt attend
to each other; a text attends to its prompt as to words before it, which keeps positions as they are, and the prompt
does not attend to the text. The other tokens see the prompt with a weight, `gate`: 0 is the pretrained model and 1 the
trained one, so that weights between both (WiSE-FT) are defined.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tracer.core.errors import NotAdaptable, UserError
from tracer.core.weights import Weights
from tracer.models.open_clip_compat import open_clip
from tracer.models.student import Student
from tracer.models.text import EndOfText
from tracer.models.trainable import freeze_towers

INITIAL = 0.02  # standard deviation, as CoOp's


@dataclass(frozen=True)
class Prompts:
    """Learned tokens: `image` in the image tower and `text` in the text tower, where 0 is none.

    They train in the towers that the method would have trained, and with them the temperature and the head.
    """

    image: int = 8
    text: int = 4

    def __post_init__(self) -> None:
        for tower, count in asdict(self).items():
            if count < 0:
                raise ValueError(f"{tower} {count}: expected a whole number of tokens, at least 0")
        if not self.image and not self.text:
            raise ValueError("image 0 and text 0: expected tokens in one tower at least")

    def __str__(self) -> str:
        return f"prompts:image={self.image},text={self.text}"

    def prepare(self, student: Student) -> None:
        """Add zeros with gate 0, which leave the model as it is. Raises NotAdaptable if a tower takes no tokens."""
        for kind, tower in student.towers:
            if count := getattr(self, kind):
                transformer: Any = getattr(tower, "transformer", None)
                if type(transformer) is not open_clip.transformer.Transformer or (
                    kind == "text" and not EndOfText.of(student.clip)
                ):
                    raise NotAdaptable(
                        f"--adapter prompts: the {kind} tower of {student.name} takes no further tokens; "
                        f"use prompts:{kind}=0, or --adapter lora"
                    )
                weight = next(transformer.parameters())
                transformer.prompt = nn.Parameter(weight.new_zeros(count, transformer.width))
                transformer.register_buffer("gate", weight.new_zeros(()))
                transformer.__class__ = type("PromptedTransformer", (Prompted, type(transformer)), {})

    def targets(self, student: Student) -> dict[str, nn.Module]:
        """The prompted parts of towers that are trained, by tower. Raises UserError if there is none."""
        targets: dict[str, nn.Module] = {
            tower.kind: tower.module.get_submodule("transformer")
            for tower in student.towers
            if getattr(self, tower.kind)
            and any(p.requires_grad for block in tower.blocks.values() for p in block.parameters())
        }
        if not targets:
            raise UserError(f"--adapter {self}: the towers with tokens are not trained by this method")
        return targets

    def attach(self, student: Student, *, averaged: bool, seed: int) -> None:
        """Train the tokens, which start at random; freeze all else but temperature and head.

        A student of which only the head is trained stays as it is.
        """
        del averaged  # tokens can be averaged
        if not any(p.requires_grad for p in student.clip.parameters()):
            return
        targets = self.targets(student)
        freeze_towers(student)
        generator = torch.Generator().manual_seed(seed)
        for transformer in targets.values():
            prompt, gate = transformer.get_parameter("prompt"), transformer.get_buffer("gate")
            if not gate:  # else an earlier stage has trained them
                with torch.no_grad():
                    prompt.copy_(INITIAL * torch.randn(prompt.shape, generator=generator))
                gate.fill_(1)
            prompt.requires_grad_(True)

    def merge(self, weights: Mapping[str, Tensor]) -> Weights:
        """The weights as they are: no weight of the model without prompts has their effect."""
        return dict(weights)


class Prompted(nn.Module):
    """The blocks of a tower with a prompt: a base, before open_clip's own, of the class that `prepare` gives them."""

    prompt: Float[Tensor, "p d"]
    gate: Float[Tensor, ""]

    def forward(
        self, x: Float[Tensor, "n l d"], attn_mask: Float[Tensor, "l l"] | None = None
    ) -> Float[Tensor, "n l d"]:
        length, count = x.shape[1], len(self.prompt)
        mask = x.new_zeros(length + count, length + count)
        mask[:length, length:] = self.gate.clamp(min=0).log()
        if attn_mask is not None:
            mask[:length, :length] = attn_mask
            mask[length:, :length] = -math.inf
        prompt = self.prompt.to(x.dtype).expand(x.shape[0], -1, -1)  # not len(x), a constant in ONNX
        return super().forward(torch.cat([x, prompt], dim=1), attn_mask=mask)[:, :length]


def has_prompt(student: Student) -> bool:
    """Whether a tower of the model has a prompt."""
    return any(isinstance(module, Prompted) for module in student.modules())
