"""Retrieval between images and captions, for data without classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from tracer.core.errors import UserError
from tracer.core.metrics import Interval, mean_interval, pair_ranks
from tracer.data.examples import Examples
from tracer.evaluation.predict import BATCH, ImageFeatures
from tracer.models.student import Student
from tracer.models.zero_shot import zero_shot
from tracer.parallel import World

DEPTHS = (1, 5, 10)


class Retrieval(NamedTuple):
    """Rank (from 0) of each image's best caption among all texts, and of each caption's image among all images."""

    image_to_text: Int[Tensor, " n"]
    text_to_image: Int[Tensor, " m"]

    def recalls(self) -> dict[str, Interval]:
        """R@1, 5 and 10 both ways, with 95 % intervals over images and over captions.

        A depth at which everything is among the first is left out.
        """
        others = {"image_to_text": len(self.text_to_image), "text_to_image": len(self.image_to_text)}
        return {
            f"{way}@{depth}": mean_interval((ranks < depth).double())
            for way, ranks in self._asdict().items()
            for depth in DEPTHS
            if depth == 1 or depth < others[way]
        }


@torch.no_grad()
def retrieve(student: Student, features: ImageFeatures, world: World) -> Retrieval:
    """Rank all captions for each image and all images for each caption; images without a caption are left out.

    A caption that several images share counts once, and any of them is right: none could be told from the others.
    """
    if not features.examples.captioned:
        raise UserError(f"{features.examples.name} has no captions to retrieve")
    captioned = features.take(np.flatnonzero([len(own) > 0 for own in features.examples.captions]))
    texts, rows = _distinct(student, captioned.examples, world)
    pairs = [(text, image) for image, own in enumerate(captioned.examples.captions) for text in own]
    order = {text: number for number, text in enumerate(dict.fromkeys(text for text, _ in pairs))}
    embeddings = texts.cpu()[torch.tensor([rows[text] for text in order])]
    numbers, images = torch.tensor([(order[text], image) for text, image in pairs]).T
    return Retrieval(*pair_ranks(captioned.unit.float().cpu(), embeddings, images, numbers))


@torch.no_grad()
def caption_hits(student: Student, features: ImageFeatures, world: World) -> list[bool]:
    """Whether the nearest caption of each image, of all distinct ones, is one of its own."""
    texts, rows = _distinct(student, features.examples, world)
    nearest = torch.cat([(part.float() @ texts.T).argmax(1) for part in features.unit.split(BATCH)])
    return [
        int(row) in {rows[text] for text in own}
        for row, own in zip(nearest, features.examples.captions, strict=True)
    ]


def _distinct(
    student: Student, examples: Examples, world: World
) -> tuple[Float[Tensor, "m d"], dict[str, int]]:
    """Embeddings of the distinct captions, and the row of each caption."""
    distinct = sorted({text for own in examples.captions for text in own})
    rows = {text: index for index, text in enumerate(distinct)}
    return world.forward(zero_shot, student, distinct, ("{}",)).float(), rows
