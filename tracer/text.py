"""Text at its own length.

A causal text tower that pools at the end-of-text token gives the same embedding whether or not padding follows,
so captions are cut at the longest one of the batch: usually 8 to 16 of 77 tokens. Other towers keep their padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tracer.clip import open_clip


def text_tower(clip: nn.Module) -> nn.Module:
    """The module that holds the text weights: a part of newer models, the model itself in the original CLIP."""
    tower = getattr(clip, "text", None)
    return tower if isinstance(tower, nn.Module) else clip


def end_of_text(clip: nn.Module) -> str | None:
    """How a causal tower finds its end-of-text token ("argmax" or "eos"); None if its padding must stay."""
    tower = text_tower(clip)
    pool = getattr(tower, "text_pool_type", getattr(tower, "pool_type", None))
    causal = isinstance(getattr(tower, "attn_mask", None), Tensor)
    appended = getattr(tower, "cls_emb", None) is not None  # CoCa reads a token behind the padding
    return pool if causal and not appended and pool in ("argmax", "eos") else None


@dataclass(frozen=True)
class Tokeniser:
    """Texts to token ids, cut to the longest one where the tower allows it. Small enough to send to workers."""

    tokeniser: Any
    pool: str | None = None
    eos: int | None = None

    @classmethod
    def of(cls, clip: nn.Module, tokeniser: Any) -> Tokeniser:
        tower = text_tower(clip)
        eos = getattr(tower, "text_eos_id", getattr(tower, "eos_id", None))
        return cls(tokeniser, end_of_text(clip), eos)

    def __call__(self, texts: Sequence[str]) -> Int[Tensor, "u l"]:
        tokens = self.tokeniser(list(texts))
        return tokens[:, : int(self.lengths(tokens).max())] if self.pool else tokens

    def lengths(self, tokens: Int[Tensor, "u l"]) -> Int[Tensor, " u"]:
        """Tokens up to and with the end of text; all of them where padding counts."""
        if self.pool == "argmax":
            return tokens.argmax(dim=1) + 1
        if self.pool == "eos":
            return (tokens == self.eos).int().argmax(dim=1) + 1
        return torch.full((len(tokens),), tokens.shape[1])


def encode_text(clip: Any, tokens: Int[Tensor, "u l"]) -> Float[Tensor, "u d"]:
    """Text features, not yet normalised, of tokens at whatever length they come."""
    pool = end_of_text(clip)
    if pool is None:
        return clip.encode_text(tokens)
    tower: Any = text_tower(clip)
    length = tokens.shape[1]
    x = tower.token_embedding(tokens) + tower.positional_embedding[:length]
    x = tower.transformer(x, attn_mask=tower.attn_mask[:length, :length])
    eos = getattr(tower, "text_eos_id", getattr(tower, "eos_id", None))
    x = open_clip.transformer.text_global_pool(tower.ln_final(x), tokens, pool, eos_token_id=eos)
    projection = tower.text_projection
    if projection is None:
        return x
    return projection(x) if isinstance(projection, nn.Linear) else x @ projection
