"""Resize, crop and augment decoded images into uint8 tensors; the model normalises them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from tracer.core.errors import unknown
from tracer.data.encoded import draft
from tracer.data.examples import Images, Pixels
from tracer.storage.images import Draft, seen

Augment = Literal["none", "crop", "crop+flip"]
AUGMENTS = ("none", "crop", "crop+flip")
SHAPES = (3 / 4, 4 / 3)  # aspect ratio (width / height) of a random crop, minimum and maximum

# Draft size as a multiple of the target size: the smallest crop then has twice the target's pixels per side.
WINDOW = 2.0 / math.sqrt(0.9 * SHAPES[0])


class Transform:
    """Resize and crop as the checkpoint expects; `augment` adds random crops of 90 to 100 % of the area and flips.

    With `drafts`, a large JPEG that is cropped at random is decoded at 1/2, 1/4 or 1/8 of its size, as long as
    the crop keeps at least twice the target's pixels per side. The crop is the same; its pixels differ by a level
    or two. Without a random crop, as in evaluation, images are always decoded in full.
    """

    def __init__(
        self, preprocess: dict[str, Any], augment: Augment = "none", *, drafts: bool = False
    ) -> None:
        if augment not in AUGMENTS:
            raise unknown("augmentation", augment, AUGMENTS)
        from tracer.models.open_clip_compat import open_clip  # late: slow to import

        config = open_clip.transform.PreprocessCfg(**preprocess)
        size = config.size if isinstance(config.size, tuple) else (config.size, config.size)
        self.height, self.width = size
        self.augment, self.drafts = augment, drafts
        # open_clip's evaluation transform without its last two steps, conversion to float and normalisation.
        evaluation: Any = open_clip.transform.image_transform_v2(config, is_train=False)
        self._resize = evaluation.transforms[:-2]

    def __call__(self, image: Image.Image, rng: np.random.Generator | None = None) -> UInt8[Tensor, "3 h w"]:
        image = seen(image)
        return torch.from_numpy(self._apply(Draft(image, image.size), rng).copy())

    def batch(
        self,
        images: Images,
        indices: Sequence[int] | np.ndarray,
        generators: Iterable[np.random.Generator] | None = None,
    ) -> UInt8[Tensor, "n 3 h w"]:
        """The images at `indices` as one tensor; augmented if `generators` holds a random generator per image."""
        size, cropped = (self.height, self.width), self.augment != "none"
        if isinstance(images, Pixels) and images.array.shape[1:3] == size and not cropped:  # nothing changes
            return torch.from_numpy(images.array[indices].transpose(0, 3, 1, 2).copy())
        rngs = generators if generators is not None else repeat(None)
        window = (math.ceil(self.width * WINDOW), math.ceil(self.height * WINDOW))
        pixels = np.empty((len(indices), 3, *size), np.uint8)
        for target, index, rng in zip(pixels, indices, rngs, strict=False):
            least = window if self.drafts and cropped and rng is not None else None
            target[:] = self._apply(draft(images, int(index), least), rng)
        return torch.from_numpy(pixels)

    def _apply(self, drafted: Draft, rng: np.random.Generator | None) -> UInt8[np.ndarray, "3 h w"]:
        image = drafted.image
        if rng is not None and self.augment != "none":
            image = self._crop(drafted, rng)
            if self.augment == "crop+flip" and rng.random() < 0.5:
                image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        else:
            for step in self._resize:
                image = step(image)
        return np.asarray(image.convert("RGB"), dtype=np.uint8).transpose(2, 0, 1)

    def _crop(self, drafted: Draft, rng: np.random.Generator) -> Image.Image:
        """A random crop of 90 to 100 % of the area with an aspect ratio in SHAPES, resized.

        As in torchvision's RandomResizedCrop, ten failed draws fall back to the largest centred crop.
        """
        width, height = drafted.stored
        for _ in range(10):
            area = width * height * rng.uniform(0.9, 1.0)
            shape = math.exp(rng.uniform(math.log(SHAPES[0]), math.log(SHAPES[1])))
            w, h = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
            if 0 < w <= width and 0 < h <= height:
                left, top = int(rng.integers(0, width - w + 1)), int(rng.integers(0, height - h + 1))
                break
        else:
            shape = min(max(width / height, SHAPES[0]), SHAPES[1])
            w, h = min(width, round(height * shape)), min(height, round(width / shape))
            left, top = (width - w) // 2, (height - h) // 2
        times, (x, y), (right, bottom) = drafted.times, drafted.start, drafted.image.size
        corner = (min(x + (left + w) / times, right), min(y + (top + h) / times, bottom))
        box = (x + left / times, y + top / times, *corner)
        return drafted.image.resize((self.width, self.height), Image.Resampling.BICUBIC, box=box)
