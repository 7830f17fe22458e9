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
    check_owners(owners, images=len(image_features), texts=len(text_features))
    own = owners.to(image_features.device, torch.int64)
    return pair_ranks(image_features, text_features, own, torch.arange(len(own)).to(own))


def pair_ranks(
    image_features: Float[Tensor, "n d"],
    text_features: Float[Tensor, "m d"],
    images: Int[Tensor, " p"],
    texts: Int[Tensor, " p"],
) -> tuple[Int[Tensor, " n"], Int[Tensor, " m"]]:
    """The ranks where image `images[i]` and text `texts[i]` belong together: those of the best match of each.

    A text may belong to several images. Every image and every text must occur.
    """
    check_logits(image_features)
    check_logits(text_features)
    image, text = normalize(image_features, dim=1), normalize(text_features, dim=1)
    return _best_ranks(image, text, images, texts), _best_ranks(text, image, texts, images)


def _best_ranks(
    queries: Float[Tensor, "n d"],
    others: Float[Tensor, "m d"],
    own: Int[Tensor, " p"],
    matches: Int[Tensor, " p"],
) -> Int[Tensor, " n"]:
    """The rank of the best match of each query; `matches[i]` is one of the query `own[i]`."""
    rows = max(1, SIMILARITIES // max(len(queries), len(others)))
    ranks = []
    for start, part in zip(range(0, len(queries), rows), queries.split(rows), strict=True):
        here = (own >= start) & (own < start + len(part))
        match = torch.zeros(len(part), len(others), dtype=torch.bool, device=queries.device)
        match[own[here] - start, matches[here]] = True
        ranks.append(best_rank(part @ others.T, match))
    return torch.cat(ranks)


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
