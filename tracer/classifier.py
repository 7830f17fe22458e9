"""A classifier out of words: class names in prompts, through the text tower."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from tracer.data.prompts import render
from tracer.model import Student

CHUNK = 256


@torch.no_grad()
def zero_shot(student: Student, classes: Sequence[str], templates: Sequence[str]) -> Float[Tensor, "c d"]:
    """One unit row a class: the normalised mean of its prompts' normalised embeddings.

    Texts are encoded once each, sorted by length, so that short prompts are not padded to the longest one.
    """
    distinct = {render(template, name) for name in classes for template in templates}
    texts = sorted(distinct, key=lambda text: (len(text), text))  # the same order in every process
    training = student.training
    student.eval()
    try:
        chunks = (texts[start : start + CHUNK] for start in range(0, len(texts), CHUNK))
        features = torch.cat([_embedded(student, chunk) for chunk in chunks])
    finally:
        student.train(training)
    row = {text: index for index, text in enumerate(texts)}
    prompts = [[row[render(template, name)] for template in templates] for name in classes]
    return normalize(features[torch.tensor(prompts, device=features.device)].mean(dim=1), dim=-1)


def _embedded(student: Student, texts: Sequence[str]) -> Float[Tensor, "u d"]:
    embedded = student.embed_text(student.tokeniser(texts).to(student.mean.device))
    return embedded.to(torch.promote_types(embedded.dtype, torch.float32))
