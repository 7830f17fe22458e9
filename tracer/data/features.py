"""Image features of a whole data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tracer.data.examples import Examples, Pixels, with_white
from tracer.data.loader import InOrder, loader
from tracer.data.transforms import Transform
from tracer.models.student import Student
from tracer.parallel import World

BATCH = 64  # images per step and process
MOST_BYTES = 2**29  # of images that are decoded once and kept in memory


def decoded(sets: Sequence[Examples], preprocess: dict[str, Any], workers: int = 0) -> list[Examples]:
    """The sets with images in memory, as models with this preprocessing see them; as they are if that is too much."""
    if decoded_bytes(sets, preprocess) > MOST_BYTES:
        return [*sets]
    return [each if _in_memory(each) else _decoded(each, Transform(preprocess), workers) for each in sets]


def decoded_bytes(sets: Sequence[Examples], preprocess: dict[str, Any]) -> int:
    """The size of the images that are not in memory yet, once they are decoded."""
    transform = Transform(preprocess)
    return sum(3 * len(each) * transform.height * transform.width for each in sets if not _in_memory(each))


def _in_memory(examples: Examples) -> bool:
    return isinstance(examples.images, Pixels)


def _decoded(examples: Examples, transform: Transform, workers: int) -> Examples:
    rows = [each.tolist() for each in torch.arange(len(examples)).split(BATCH)]
    pixels = np.empty((len(examples), transform.height, transform.width, 3), np.uint8)
    batches = loader(InOrder(examples.images, rows, transform), range(len(rows)), min(workers, len(rows) - 1))
    for indices, images in zip(rows, batches, strict=True):
        pixels[indices] = images.permute(0, 2, 3, 1).numpy()
    return replace(examples, images=Pixels(pixels))


@torch.no_grad()
def embed_images(
    student: Student,
    examples: Examples,
    world: World,
    *,
    unit: bool = True,
    workers: int = 0,
) -> Iterator[Float[Tensor, "n d"]]:
    """Image embeddings in order, one batch at a time, in eval mode; not normalised if `unit` is False.

    Images of more than eight bits whose white is not known have that of the model's training.
    Always in fp32, whatever the precision of training, so that scores do not depend on the machine.
    """
    step, count = BATCH * world.size, len(examples)
    batches = [range(start, min(start + step, count)) for start in range(0, count, step)]
    rows = [world.share(indices) for indices in batches]
    images = with_white(examples.images, examples.white_level or student.white_level)
    shares = InOrder(images, rows, Transform(student.preprocess_cfg))
    # For a single batch, or where nothing is to be decoded, starting a worker does not pay off.
    workers = 0 if _in_memory(examples) else min(workers, len(batches) - 1)
    embed = Student.embed_image if unit else Student.encode_image
    training = student.training
    student.eval()
    try:
        for indices, images in zip(batches, loader(shares, range(len(batches)), workers), strict=True):
            images = images.to(world.device)
            yield world.collect(world.forward(embed, student, images), len(indices))
    finally:
        student.train(training)
