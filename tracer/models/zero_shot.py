"""The zero-shot classifier: class names in prompts, encoded by the text tower."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from tracer.models.prompts import render
from tracer.models.shared_words import encode_groups, shares_words
from tracer.models.student import Student, evaluating
from tracer.models.text import Tokeniser

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
        features = normalize(encode_groups(student.clip, *inputs, chunk=CHUNK), dim=-1)
    else:
        order, parts = [], []
        for length in lengths.unique().tolist():
            for rows in (lengths == length).nonzero().flatten().split(CHUNK):
                order.append(rows)
                parts.append(student.embed_text(tokens[rows, :length].to(device)))
        features = torch.cat(parts)[torch.cat(order).argsort().to(device)]
    return features.to(torch.promote_types(features.dtype, torch.float32))


@lru_cache(maxsize=16)  # every evaluation and every candidate of a merge asks for the same prompts
def _tokens(tokeniser: Tokeniser, texts: tuple[str, ...]) -> Int[Tensor, "u l"]:
    return tokeniser(texts)
