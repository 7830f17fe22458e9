"""The zero-shot classifier: class names in prompts, encoded by the text tower.

A causal tower can compute the first words that prompts have in common once, as no token depends on later ones. Results
equal those of whole texts up to rounding, in about half of the time for prompts such as "a photo of a {}.".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import normalize

from tracer.models.open_clip_compat import open_clip
from tracer.models.prompts import render
from tracer.models.student import Student, evaluating
from tracer.models.text import EndOfText, Tokeniser, projected, text_tower, token_features
from tracer.models.towers import Tower

CHUNK = 256


@torch.no_grad()
def zero_shot(
    student: Student, classes: Sequence[str], templates: Sequence[str], *, share_words: bool = False
) -> Float[Tensor, "c d"]:
    """One unit row per class: the normalised mean of the normalised embeddings of its prompts.

    Each distinct text is encoded once, in a batch of texts of equal length, so that nothing is padded. With
    `share_words`, the first words of a template are computed once, if the tower allows it: the same up to rounding.
    """
    rendered = [[render(template, name) for template in templates] for name in classes]
    row = {text: index for index, text in enumerate(dict.fromkeys(chain.from_iterable(rendered)))}
    groups = None
    if share_words and len(classes) > 1 and shares_words(student.clip):
        template = {text: number for texts in rendered for number, text in enumerate(texts)}
        groups = torch.tensor([template[text] for text in row])
    with evaluating(student):
        features = _embed(student, [*row], groups)
    prompts = torch.tensor([[row[text] for text in texts] for texts in rendered], device=features.device)
    return normalize(features[prompts].mean(dim=1), dim=-1)


def _embed(student: Student, texts: Sequence[str], groups: Int[Tensor, " u"] | None) -> Float[Tensor, "u d"]:
    tokens = _tokens(student.tokeniser, tuple(texts))
    lengths = student.tokeniser.lengths(tokens)
    device = student.mean.device
    if groups is not None:
        inputs = (each.to(device) for each in (tokens, lengths, groups))
        features = normalize(_encode_groups(student.clip, *inputs), dim=-1)
    else:
        order, parts = [], []
        for rows, length in _by_length(lengths):
            order.append(rows)
            parts.append(student.embed_text(tokens[rows, :length].to(device)))
        features = torch.cat(parts)[torch.cat(order).argsort().to(device)]
    return features.to(torch.promote_types(features.dtype, torch.float32))


@lru_cache(maxsize=16)  # every evaluation and every candidate of a merge asks for the same prompts
def _tokens(tokeniser: Tokeniser, texts: tuple[str, ...]) -> Int[Tensor, "u l"]:
    return tokeniser(texts)


def _by_length(lengths: Int[Tensor, " u"]) -> Iterator[tuple[Int[Tensor, " k"], int]]:
    """The rows of texts of equal length, a chunk at a time, with their length."""
    for length in lengths.unique().tolist():
        for rows in (lengths == length).nonzero().flatten().split(CHUNK):
            yield rows, length


def shares_words(clip: nn.Module) -> bool:
    """Whether the text tower is one whose first words can be computed once: open_clip's own, causal, as it is."""
    layers = open_clip.transformer
    tower = Tower("text", text_tower(clip))
    transformer: Any = getattr(tower.module, "transformer", None)
    return (
        EndOfText.of(clip) is not None
        and type(transformer) is layers.Transformer
        and tower.order == "first"
        and all(type(block) is layers.ResidualAttentionBlock for block in transformer.resblocks)
    )


def _encode_groups(
    clip: nn.Module, tokens: Int[Tensor, "u l"], lengths: Int[Tensor, " u"], groups: Int[Tensor, " u"]
) -> Float[Tensor, "u d"]:
    """Text features, not normalised, of token ids that end at `lengths`; texts of one group may begin alike."""
    order, parts = [], []
    starts = _common(tokens, lengths, groups)
    for start in starts.unique().tolist():
        rows = (starts == start).nonzero().flatten()
        own, group = groups[rows].unique(return_inverse=True)
        first = torch.stack([(groups == each).nonzero()[0, 0] for each in own])
        words = [*_words(clip, tokens[first, :start])]
        for part, length in _by_length(lengths[rows]):
            order.append(rows[part])
            parts.append(_rest(clip, tokens[rows[part], :length], start, [w[group[part]] for w in words]))
    return torch.cat(parts)[torch.cat(order).argsort()]


def _common(
    tokens: Int[Tensor, "u l"], lengths: Int[Tensor, " u"], groups: Int[Tensor, " u"]
) -> Int[Tensor, " u"]:
    """The number of first tokens that all texts of a text's group have, without the last token of any."""
    starts = torch.zeros_like(lengths)
    for group in groups.unique():
        own = groups == group
        same = (tokens[own] == tokens[own][:1]).all(dim=0).int().cumprod(dim=0).sum()
        starts[own] = torch.minimum(same, lengths[own].min() - 1)
    return starts


def _words(clip: nn.Module, tokens: Int[Tensor, "g p"]) -> Iterator[Float[Tensor, "g p w"]]:
    """The normalised input of each block, of which keys and values are made."""
    tower: Any = text_tower(clip)
    x, length = token_features(tower, tokens), tokens.shape[1]
    for block in tower.transformer.resblocks:
        yield block.ln_1(x)
        x = block(x, attn_mask=tower.attn_mask[:length, :length])


def _rest(
    clip: nn.Module, tokens: Int[Tensor, "n l"], start: int, words: list[Float[Tensor, "n p w"]]
) -> Float[Tensor, "n d"]:
    """Features of texts whose first `start` tokens have the given inputs to each block."""
    tower: Any = text_tower(clip)
    x, length = token_features(tower, tokens, start), tokens.shape[1]
    mask = tower.attn_mask[start:length, :length]
    for block, before in zip(tower.transformer.resblocks, words, strict=True):
        own = block.ln_1(x)
        everything = torch.cat([before, own], dim=1)
        if block is tower.transformer.resblocks[-1]:  # of which only the last token is used
            x, own, mask = x[:, -1:], own[:, -1:], mask[-1:]
        x = x + block.ls_1(block.attention(own, everything, everything, mask))
        x = x + block.ls_2(block.mlp(block.ln_2(x)))
    return projected(tower, tower.ln_final(x[:, -1]))
