"""Finding the caption of an image, and the image of a caption."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from tracer.core.errors import UserError
from tracer.core.metrics.metric import check_logits, positive
from tracer.core.metrics.scores import rank

SIMILARITIES = 2**24  # computed at a time, to bound memory


class Recall(NamedTuple):
    """Share of queries that find a match among the k nearest, in both directions."""

    image_to_text: float
    text_to_image: float


def recall_at(
    image_features: Float[Tensor, "n d"],
    text_features: Float[Tensor, "m d"],
    owners: Int[Tensor, " m"],
    k: int = 1,
) -> Recall:
    """R@k by cosine similarity; `owners[j]` is the image that caption j describes.

    An image counts when any of its captions is among the k nearest texts, a caption when its own image is
    among the k nearest images. Equal similarities are ordered by index: collapsed features score at chance.
    """
    images, texts = match_ranks(image_features, text_features, owners)
    positive("k", k)
    return Recall(float((images < k).double().mean()), float((texts < k).double().mean()))


def match_ranks(
    image_features: Float[Tensor, "n d"], text_features: Float[Tensor, "m d"], owners: Int[Tensor, " m"]
) -> tuple[Int[Tensor, " n"], Int[Tensor, " m"]]:
    """How many texts come before each image's best caption, and images before each caption's own."""
    check_logits(image_features)
    check_logits(text_features)
    check_owners(owners, images=len(image_features), texts=len(text_features))
    image, text = normalize(image_features, dim=1), normalize(text_features, dim=1)
    owners = owners.to(image.device, torch.int64)
    rows = max(1, SIMILARITIES // max(len(image), len(text)))
    best = [
        best_rank(part @ text.T, owners == own[:, None])
        for part, own in zip(image.split(rows), torch.arange(len(image)).to(owners).split(rows), strict=True)
    ]
    own = [
        rank(part @ image.T, owner) for part, owner in zip(text.split(rows), owners.split(rows), strict=True)
    ]
    return torch.cat(best), torch.cat(own)


def best_rank(similarity: Float[Tensor, "n m"], match: Tensor) -> Int[Tensor, " n"]:
    """The rank of the most similar of the matches of each row."""
    nearest = similarity.masked_fill(~match, -torch.inf).argmax(dim=1)
    return rank(similarity, nearest)


def check_owners(owners: Int[Tensor, " m"], images: int, texts: int) -> None:
    """Refuse captions of images that are not there, and images without any caption."""
    if owners.shape != (texts,):
        raise ValueError(f"one owner for each of {texts} captions expected, not {list(owners.shape)}")
    first, last = int(owners.min()), int(owners.max())
    if first < 0 or last >= images:
        raise UserError(f"captions belong to images {first}…{last}, where there are {images}")
    bare = images - len(owners.unique())
    if bare:
        raise UserError(
            f"{bare} of {images} images have no caption: leave them out before measuring retrieval"
        )
