"""From a decoded image to the pixels a model expects, as uint8; the model itself normalises them."""

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

from tracer.clip import open_clip
from tracer.data.examples import Images, Pixels
from tracer.errors import unknown

Augment = Literal["none", "crop", "crop+flip"]
AUGMENTS = ("none", "crop", "crop+flip")
SHAPES = (3 / 4, 4 / 3)  # width over height of a random crop, from the slimmest to the broadest


class Transform:
    """Resize and crop as the checkpoint wants; `augment` crops 90 to 100 % at random and may mirror."""

    def __init__(self, preprocess: dict[str, Any], augment: Augment = "none") -> None:
        if augment not in AUGMENTS:
            raise unknown("augmentation", augment, AUGMENTS)
        config = open_clip.transform.PreprocessCfg(**preprocess)
        size = config.size if isinstance(config.size, tuple) else (config.size, config.size)
        self.height, self.width = size
        self.augment = augment
        # open_clip's evaluation transform without its last two members, which make floats and normalise them.
        evaluation: Any = open_clip.transform.image_transform_v2(config, is_train=False)
        self._fit = evaluation.transforms[:-2]

    def __call__(self, image: Image.Image, rng: np.random.Generator | None = None) -> UInt8[Tensor, "3 h w"]:
        if rng is not None and self.augment != "none":
            image = self._crop(image, rng)
            if self.augment == "crop+flip" and rng.random() < 0.5:
                image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        else:
            for step in self._fit:
                image = step(image)
        return torch.from_numpy(np.asarray(image.convert("RGB"), dtype=np.uint8).transpose(2, 0, 1).copy())

    def batch(
        self,
        images: Images,
        indices: Sequence[int] | np.ndarray,
        generators: Iterable[np.random.Generator] | None = None,
    ) -> UInt8[Tensor, "n 3 h w"]:
        """The images at `indices` as one tensor; with generators, one an image, they are augmented."""
        if isinstance(images, Pixels) and self._keeps(images.array):
            return torch.from_numpy(images.array[indices].transpose(0, 3, 1, 2).copy())
        rngs = generators if generators is not None else repeat(None)
        return torch.stack([self(images[int(i)], rng) for i, rng in zip(indices, rngs, strict=False)])

    def _keeps(self, array: np.ndarray) -> bool:
        """Whether images in memory pass through unchanged, so that a batch of them can be taken at once."""
        return self.augment == "none" and array.shape[1:3] == (self.height, self.width)

    def _crop(self, image: Image.Image, rng: np.random.Generator) -> Image.Image:
        """A random window of 90 to 100 % of the area, at most a third longer on one side, resized.

        Where ten draws find none, it is the largest such window in the middle: torchvision's RandomResizedCrop.
        """
        width, height = image.size
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
        box = (left, top, left + w, top + h)
        return image.resize((self.width, self.height), Image.Resampling.BICUBIC, box=box)
