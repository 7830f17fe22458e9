"""Images and captions find each other: what a model without classes is measured by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from tracer.core.errors import UserError
from tracer.core.metrics import Interval, match_ranks, mean_interval
from tracer.data.examples import Examples
from tracer.evaluation.predict import BATCH, Seen
from tracer.models.student import Student
from tracer.models.zero_shot import zero_shot
from tracer.parallel import World

DEPTHS = (1, 5, 10)


class Retrieval(NamedTuple):
    """How many texts come before each image's best caption, and how many images before each caption's own."""

    image_to_text: Int[Tensor, " n"]
    text_to_image: Int[Tensor, " m"]

    def recalls(self) -> dict[str, Interval]:
        """R@1, 5 and 10 both ways, with 95 % intervals over images and over captions."""
        return {
            f"{way}@{depth}": mean_interval((ranks < depth).double())
            for way, ranks in self._asdict().items()
            for depth in DEPTHS
        }


@torch.no_grad()
def retrieve(student: Student, seen: Seen, world: World) -> Retrieval:
    """Rank all captions for each image and all images for each caption; images without a caption are left out."""
    if not seen.examples.captioned:
        raise UserError(f"{seen.examples.name} has no captions to retrieve")
    said = seen.take(np.flatnonzero([len(own) > 0 for own in seen.examples.captions]))
    texts, rows = _distinct(student, said.examples, world)
    captions = [(rows[text], owner) for owner, own in enumerate(said.examples.captions) for text in own]
    each, owners = torch.tensor(captions).T
    return Retrieval(*match_ranks(said.unit.float().cpu(), texts.cpu()[each], owners))


@torch.no_grad()
def caption_accuracy(student: Student, seen: Seen, world: World) -> float:
    """Share of images whose nearest caption, of all distinct ones, is one of their own."""
    texts, rows = _distinct(student, seen.examples, world)
    nearest = torch.cat([(part.float() @ texts.T).argmax(1) for part in seen.unit.split(BATCH)])
    found = [
        int(near) in {rows[text] for text in own}
        for near, own in zip(nearest, seen.examples.captions, strict=True)
    ]
    return sum(found) / len(found)


def _distinct(
    student: Student, examples: Examples, world: World
) -> tuple[Float[Tensor, "m d"], dict[str, int]]:
    """Every caption embedded once, and the row of each."""
    distinct = sorted({text for own in examples.captions for text in own})
    rows = {text: index for index, text in enumerate(distinct)}
    return world.forward(zero_shot, student, distinct, ("{}",)).float(), rows
