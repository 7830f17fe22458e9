"""Image-text retrieval: the rank of the match, in both directions."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from tracer.core.metrics.metric import check_logits
from tracer.core.metrics.scores import rank

SIMILARITIES = 2**24  # computed at a time, to bound memory


def pair_ranks(
    image_features: Float[Tensor, "n d"],
    text_features: Float[Tensor, "m d"],
    images: Int[Tensor, " p"],
    texts: Int[Tensor, " p"],
) -> tuple[Int[Tensor, " n"], Int[Tensor, " m"]]:
    """The rank of each image's best match among the texts, and of each text's among the images; 0 is the nearest.

    Image `images[i]` and text `texts[i]` belong together; each of both must occur, and may do so several times. Recall
    at k is the share of ranks below k. Ranks are by cosine similarity, and ties are ordered by index, so that collapsed
    features score at chance.
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
        similarity = part @ others.T
        nearest = similarity.masked_fill(~match, -torch.inf).argmax(dim=1)
        ranks.append(rank(similarity, nearest))
    return torch.cat(ranks)
