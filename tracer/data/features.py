"""Image features of a whole data set."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from tracer.data.examples import Examples
from tracer.data.loader import InOrder, loader
from tracer.data.transforms import Transform
from tracer.models.student import Student
from tracer.parallel import World

BATCH = 64  # images at a time in each process


@torch.no_grad()
def embed_images(
    student: Student,
    examples: Examples,
    world: World,
    batch: int = BATCH,
    *,
    unit: bool = True,
    workers: int = 0,
) -> Iterator[Float[Tensor, "n d"]]:
    """Image embeddings in order, a batch at a time, in eval mode; as the tower makes them if not `unit`.

    In fp32 whatever the training's precision is: a score should not depend on the machine that took it.
    """
    every, count = batch * world.size, len(examples)
    turns = [range(start, min(start + every, count)) for start in range(0, count, every)]
    shares = InOrder(examples.images, [world.share(turn) for turn in turns], Transform(student.preprocess))
    helpers = min(workers, len(turns) - 1)  # a single batch is here before a helper is
    embed = Student.embed_image if unit else Student.encode_image
    training = student.training
    student.eval()
    try:
        for turn, images in zip(turns, loader(shares, range(len(turns)), helpers), strict=True):
            images = images.to(world.device)
            yield world.collect(world.forward(embed, student, images), len(turn))
    finally:
        student.train(training)
