"""Image-text retrieval: the rank of the match, in both directions."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from tracer.core.errors import UserError
from tracer.core.metrics.metric import check_logits
from tracer.core.metrics.scores import rank

SIMILARITIES = 2**24  # computed at a time, to bound memory


def match_ranks(
    image_features: Float[Tensor, "n d"], text_features: Float[Tensor, "m d"], owners: Int[Tensor, " m"]
) -> tuple[Int[Tensor, " n"], Int[Tensor, " m"]]:
    """The rank of each image's best caption among the texts, and of each caption's image; 0 is the nearest.

    `owners[j]` is the image that caption j describes; recall at k is the share of ranks below k. Ranks are by cosine
    similarity, and ties are ordered by index, so that collapsed features score at chance.
    """
    check_logits(image_features)
    check_logits(text_features)
    check_owners(owners, images=len(image_features), texts=len(text_features))
    image, text = normalize(image_features, dim=1), normalize(text_features, dim=1)
    owners = owners.to(image.device, torch.int64)
    rows = max(1, SIMILARITIES // max(len(image), len(text)))
    indices = torch.arange(len(image)).to(owners)
    image_ranks = [
        best_rank(part @ text.T, owners == index[:, None])
        for part, index in zip(image.split(rows), indices.split(rows), strict=True)
    ]
    text_ranks = [
        rank(part @ image.T, owner) for part, owner in zip(text.split(rows), owners.split(rows), strict=True)
    ]
    return torch.cat(image_ranks), torch.cat(text_ranks)


def best_rank(similarity: Float[Tensor, "n m"], match: Tensor) -> Int[Tensor, " n"]:
    """The rank of the most similar match of each row."""
    nearest = similarity.masked_fill(~match, -torch.inf).argmax(dim=1)
    return rank(similarity, nearest)


def check_owners(owners: Int[Tensor, " m"], images: int, texts: int) -> None:
    """Raise if a caption belongs to no image or an image has no caption."""
    if owners.shape != (texts,):
        raise ValueError(f"one owner for each of {texts} captions expected, not {list(owners.shape)}")
    first, last = int(owners.min()), int(owners.max())
    if first < 0 or last >= images:
        raise UserError(f"captions belong to images {first}…{last}, but there are {images}")
    without = images - len(owners.unique())
    if without:
        raise UserError(
            f"{without} of {images} images have no caption: leave them out before measuring retrieval"
        )
