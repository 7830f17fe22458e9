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

BATCH = 64  # images per step and process


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
    """Image embeddings in order, one batch at a time, in eval mode; not normalised if `unit` is False.

    Always in fp32, whatever the precision of training, so that scores do not depend on the machine.
    """
    step, count = batch * world.size, len(examples)
    batches = [range(start, min(start + step, count)) for start in range(0, count, step)]
    rows = [world.share(indices) for indices in batches]
    shares = InOrder(examples.images, rows, Transform(student.preprocess_cfg))
    workers = min(workers, len(batches) - 1)  # for a single batch, starting a worker does not pay off
    embed = Student.embed_image if unit else Student.encode_image
    training = student.training
    student.eval()
    try:
        for indices, images in zip(batches, loader(shares, range(len(batches)), workers), strict=True):
            images = images.to(world.device)
            yield world.collect(world.forward(embed, student, images), len(indices))
    finally:
        student.train(training)
