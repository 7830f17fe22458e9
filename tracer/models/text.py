"""Text encoding without padding.

The embedding of a causal text tower that pools at the end-of-text token does not depend on the padding after it, and
neither does that of a Hugging Face tower, which masks its padding. Token ids are therefore cut at the longest text of a
batch, usually 8 to 16 of 77 tokens. Other towers (SigLIP, MobileCLIP, CLIPA) attend to their padding and keep it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


@dataclass(frozen=True)
class EndOfText:
    """Finds the end-of-text token at which a causal tower pools: the highest id, or a given one."""

    id: int | None = None

    @classmethod
    def of(cls, clip: nn.Module) -> EndOfText | None:
        """The end-of-text token of a model; None if its embeddings depend on the padding."""
        tower = text_tower(clip)
        pool = getattr(tower, "text_pool_type", getattr(tower, "pool_type", None))
        causal = isinstance(getattr(tower, "attn_mask", None), Tensor)
        appended = getattr(tower, "cls_emb", None) is not None  # CoCa pools a token after the padding
        if not causal or appended or pool not in ("argmax", "eos"):
            return None
        eos = getattr(tower, "text_eos_id", getattr(tower, "eos_id", None))
        return cls(None if pool == "argmax" else eos)

    def __call__(self, tokens: Int[Tensor, "u l"]) -> Int[Tensor, " u"]:
        """The position of the end-of-text token in each row."""
        return (tokens if self.id is None else (tokens == self.id).int()).argmax(dim=1)


@dataclass(frozen=True)
class MaskedPadding:
    """Finds the last token before the padding of a tower that masks its padding."""

    id: int

    @classmethod
    def of(cls, clip: nn.Module) -> MaskedPadding | None:
        """The padding of a Hugging Face text tower that pools over its real tokens; None for other towers."""
        tower: Any = text_tower(clip)
        pooler = type(getattr(tower, "pooler", None)).__name__
        padding = getattr(getattr(tower, "config", None), "pad_token_id", None)
        if pooler not in ("MeanPooler", "ClsPooler", "ClsLastHiddenStatePooler") or padding is None:
            return None
        return cls(padding)

    def __call__(self, tokens: Int[Tensor, "u l"]) -> Int[Tensor, " u"]:
        """The position of the last token that is not padding in each row; 0 where there is none."""
        position = torch.arange(tokens.shape[1], device=tokens.device)
        return torch.where(tokens != self.id, position, 0).amax(dim=1)


def text_end(clip: nn.Module) -> EndOfText | MaskedPadding | None:
    """Where the texts of a model end; None if its embeddings depend on the padding after that."""
    return EndOfText.of(clip) or MaskedPadding.of(clip)


@dataclass(frozen=True)
class Tokeniser:
    """Texts to token ids, cut at the longest text if the tower allows it. Cheap to send to loader workers."""

    tokeniser: Any
    end: EndOfText | MaskedPadding | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Tokeniser:
        return self  # immutable, and its tables are slow to copy

    def __call__(self, texts: Sequence[str]) -> Int[Tensor, "u l"]:
        tokens = self.tokeniser(list(texts))
        return tokens[:, : int(self.lengths(tokens).max())]

    def lengths(self, tokens: Int[Tensor, "u l"]) -> Int[Tensor, " u"]:
        """The number of tokens of each text that the tower needs: up to its end, or all if padding matters."""
        if self.end is None:
            return tokens.new_full((len(tokens),), tokens.shape[1])
        return self.end(tokens) + 1


def text_tower(clip: nn.Module) -> nn.Module:
    """The module with the text weights: a submodule in newer models, the whole model in the original CLIP."""
    tower = getattr(clip, "text", None)
    return tower if isinstance(tower, nn.Module) else clip


def vocabulary(clip: nn.Module) -> int | None:
    """The number of token ids that the text tower knows; None if it does not say."""
    return getattr(text_tower(clip), "vocab_size", None)


def encode_text(clip: Any, tokens: Int[Tensor, "u l"]) -> Float[Tensor, "u d"]:
    """Text features, not normalised, of token ids of any length."""
    end = EndOfText.of(clip)
    if end is None:
        return clip.encode_text(tokens)
    tower: Any = text_tower(clip)
    length = tokens.shape[1]
    x = token_features(tower, tokens)
    x = tower.ln_final(tower.transformer(x, attn_mask=tower.attn_mask[:length, :length]))
    return projected(tower, x[torch.arange(len(tokens), device=tokens.device), end(tokens)])


def token_features(tower: Any, tokens: Int[Tensor, "u l"], start: int = 0) -> Float[Tensor, "u k w"]:
    """The input of the first block of a causal tower, from token `start` on."""
    dtype = tower.transformer.get_cast_dtype()
    positions = tower.positional_embedding[start : tokens.shape[1]]
    return tower.token_embedding(tokens[:, start:]).to(dtype) + positions.to(dtype)


def projected(tower: Any, features: Float[Tensor, "u w"]) -> Float[Tensor, "u d"]:
    """Pooled features of a causal tower in the embedding that both towers share."""
    projection = tower.text_projection
    if projection is None:
        return features
    return projection(features) if isinstance(projection, nn.Linear) else features @ projection
