"""Text at its own length.

A causal text tower that pools at the end-of-text token gives the same embedding whether or not padding
follows. Captions are therefore cut at the longest one of the batch: usually 8 to 16 of 77 tokens. Other
towers keep their padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


@dataclass(frozen=True)
class End:
    """How a causal tower finds the end-of-text token at which it pools: the highest id, or a given one."""

    id: int | None = None

    @classmethod
    def of(cls, clip: nn.Module) -> End | None:
        """None for a tower whose embedding depends on the padding."""
        tower = text_tower(clip)
        pool = getattr(tower, "text_pool_type", getattr(tower, "pool_type", None))
        causal = isinstance(getattr(tower, "attn_mask", None), Tensor)
        appended = getattr(tower, "cls_emb", None) is not None  # CoCa reads a token behind the padding
        if not causal or appended or pool not in ("argmax", "eos"):
            return None
        eos = getattr(tower, "text_eos_id", getattr(tower, "eos_id", None))
        return cls(None if pool == "argmax" else eos)

    def __call__(self, tokens: Int[Tensor, "u l"]) -> Int[Tensor, " u"]:
        """The place of the end of each text."""
        return (tokens if self.id is None else (tokens == self.id).int()).argmax(dim=1)


@dataclass(frozen=True)
class Tokeniser:
    """Texts to token ids, cut to the longest where the tower allows it. Small enough to send to workers."""

    tokeniser: Any
    end: End | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Tokeniser:
        return self  # it never changes, and copying its tables takes longer than copying a small model

    def __call__(self, texts: Sequence[str]) -> Int[Tensor, "u l"]:
        tokens = self.tokeniser(list(texts))
        return tokens[:, : int(self.lengths(tokens).max())]

    def lengths(self, tokens: Int[Tensor, "u l"]) -> Int[Tensor, " u"]:
        """The tokens that the tower has to see of each text: up to its end, or all where padding counts."""
        if self.end is None:
            return tokens.new_full((len(tokens),), tokens.shape[1])
        return self.end(tokens) + 1


def text_tower(clip: nn.Module) -> nn.Module:
    """The module that holds the text weights: a part of newer models, all of the original CLIP."""
    tower = getattr(clip, "text", None)
    return tower if isinstance(tower, nn.Module) else clip


def encode_text(clip: Any, tokens: Int[Tensor, "u l"]) -> Float[Tensor, "u d"]:
    """Text features, not yet normalised, of tokens at whatever length they come."""
    end = End.of(clip)
    if end is None:
        return clip.encode_text(tokens)
    tower: Any = text_tower(clip)
    length, dtype = tokens.shape[1], tower.transformer.get_cast_dtype()
    x = tower.token_embedding(tokens).to(dtype) + tower.positional_embedding[:length].to(dtype)
    x = tower.ln_final(tower.transformer(x, attn_mask=tower.attn_mask[:length, :length]))
    x = x[torch.arange(len(tokens), device=tokens.device), end(tokens)]
    projection = tower.text_projection
    if projection is None:
        return x
    return projection(x) if isinstance(projection, nn.Linear) else x @ projection
