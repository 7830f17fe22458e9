"""Image corruptions for any test set, computed on the fly and deterministic.

Kinds and severities follow ImageNet-C (Hendrycks & Dietterich 2019, arXiv 1903.12261), which defines them for
images of 224 pixels. Larger images are first resized to that, and lengths are scaled down for smaller ones, so that
a severity means about the same for all sizes.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from io import BytesIO

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image, ImageFilter
from torch.nn.functional import conv2d, pad

from tracer.core.errors import UserError
from tracer.data.examples import Examples, Images
from tracer.evaluation.suites.shift import Average, Shift, Suite

SIDE = 224
DEFAULT_SEVERITIES = (1, 3, 5)

Corruption = Callable[[Image.Image, float, np.random.Generator], Image.Image]


def gaussian_noise(image: Image.Image, deviation: float, rng: np.random.Generator) -> Image.Image:
    """Independent normal noise on every value."""
    values = to_unit_range(image)
    return to_image(values + rng.normal(scale=deviation, size=values.shape))


def shot_noise(image: Image.Image, photons: float, rng: np.random.Generator) -> Image.Image:
    """Poisson noise, as with few photons."""
    return to_image(rng.poisson(to_unit_range(image) * photons) / photons)


def gaussian_blur(image: Image.Image, deviation: float, _: np.random.Generator) -> Image.Image:
    """Convolution with a Gaussian."""
    return image.filter(ImageFilter.GaussianBlur(deviation * relative_size(image)))


def defocus_blur(image: Image.Image, radius: float, _: np.random.Generator) -> Image.Image:
    """Convolution with a disk, as by a lens out of focus."""
    kernel = disk(round(radius * relative_size(image), 3))
    reach = kernel.shape[0] // 2
    values = torch.from_numpy(to_unit_range(image).transpose(2, 0, 1)).float()[:, None]
    padded = pad(values, (reach, reach, reach, reach), mode="replicate")
    return to_image(conv2d(padded, kernel[None, None].float())[:, 0].numpy().transpose(1, 2, 0))


def jpeg(image: Image.Image, quality: float, _: np.random.Generator) -> Image.Image:
    """JPEG compression."""
    file = BytesIO()
    image.save(file, "JPEG", quality=int(quality))
    with Image.open(file) as compressed:
        return compressed.convert("RGB")


def brightness(image: Image.Image, amount: float, _: np.random.Generator) -> Image.Image:
    """Raise the HSV value (the largest channel) of each pixel, with the same hue and saturation."""
    values = to_unit_range(image)
    largest = values.max(axis=2, keepdims=True)
    raised = np.minimum(largest + amount, 1)
    black = np.broadcast_to(raised, values.shape)
    return to_image(np.where(largest > 0, values * raised / np.maximum(largest, 1e-12), black))


def contrast(image: Image.Image, factor: float, _: np.random.Generator) -> Image.Image:
    """Scale the difference of every value from its channel's mean."""
    values = to_unit_range(image)
    mean = values.mean(axis=(0, 1), keepdims=True)
    return to_image((values - mean) * factor + mean)


def pixelate(image: Image.Image, factor: float, _: np.random.Generator) -> Image.Image:
    """Resize to a smaller size and back."""
    small = [max(1, int(length * factor)) for length in image.size]
    return image.resize(small, Image.Resampling.BOX).resize(image.size, Image.Resampling.BOX)


KINDS: dict[str, tuple[Corruption, tuple[float, ...]]] = {
    "gaussian_noise": (gaussian_noise, (0.08, 0.12, 0.18, 0.26, 0.38)),
    "shot_noise": (shot_noise, (60, 25, 12, 5, 3)),
    "gaussian_blur": (gaussian_blur, (1, 2, 3, 4, 6)),
    "defocus_blur": (defocus_blur, (3, 4, 6, 8, 10)),
    "jpeg": (jpeg, (25, 18, 15, 10, 7)),
    "brightness": (brightness, (0.1, 0.2, 0.3, 0.4, 0.5)),
    "contrast": (contrast, (0.4, 0.3, 0.2, 0.1, 0.05)),
    "pixelate": (pixelate, (0.6, 0.5, 0.4, 0.3, 0.25)),
}


@dataclass(frozen=True)
class Corrupted:
    """Images with a corruption; an index gives the same image every time."""

    images: Images
    kind: str
    severity: int

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Image.Image:
        corruption, strengths = KINDS[self.kind]
        rng = np.random.default_rng([zlib.crc32(self.kind.encode()), self.severity, 0, index])
        image = self.images[index]
        factor = SIDE / min(image.size)
        if factor < 1:
            size = [max(1, round(side * factor)) for side in image.size]
            image = image.resize(size, Image.Resampling.BICUBIC)
        return corruption(image, strengths[self.severity - 1], rng)


def corrupt(suite: Suite, *specs: str) -> Suite:
    """The suite with further shifts, its "id" test sets under each corruption in `specs`, and the mean over them.

    A corruption is written KIND:SEVERITY; KIND alone stands for severities 1, 3 and 5, and `all` for every kind.
    """
    pairs = list(dict.fromkeys(pair for spec in specs for pair in _pairs(spec)))
    if pairs and not suite.of("id"):
        raise UserError(
            "corruptions are made of a test set with the role id, and there is none: give id=DATA"
        )
    shifts = [_shift(shift, *pair) for shift in suite.of("id") for pair in pairs]
    mean = (Average("corrupted", tuple(shift.name for shift in shifts)),) if len(shifts) > 1 else ()
    return replace(suite, shifts=(*suite.shifts, *shifts), extra=(*suite.extra, *mean))


def _pairs(spec: str) -> list[tuple[str, int]]:
    """The kinds and severities of KIND[:SEVERITY]."""
    kind, colon, severity = spec.partition(":")
    if colon and severity not in ("1", "2", "3", "4", "5"):
        raise UserError(f"the corruption {spec!r} must be written KIND:SEVERITY, with a severity of 1 to 5")
    if kind not in KINDS and kind != "all":
        raise UserError(f"unknown corruption {kind!r}: choose from all, {', '.join(KINDS)}")
    kinds, severities = KINDS if kind == "all" else (kind,), (int(severity),) if colon else DEFAULT_SEVERITIES
    return list(itertools.product(kinds, severities))


def corrupted(examples: Examples, kind: str, severity: int) -> Examples:
    """The examples under a corruption."""
    images = Corrupted(examples.images, kind, severity)
    return replace(examples, name=f"{examples.name} {kind} {severity}", images=images, contents=None)


def _shift(shift: Shift, kind: str, severity: int) -> Shift:
    return replace(
        shift,
        name=f"{shift.name} {kind} {severity}",
        short=f"{kind} {severity}",
        role="ood",
        load=lambda: corrupted(shift.load(), kind, severity),
        original=shift.load,
        source={**shift.source, "corrupt": [kind, severity]},
    )


def relative_size(image: Image.Image) -> float:
    """The shorter side relative to the 224 pixels for which severities are defined."""
    return min(image.size) / SIDE


def to_unit_range(image: Image.Image) -> Float[np.ndarray, "h w 3"]:
    """Pixel values in [0, 1]."""
    return np.asarray(image, dtype=np.float64) / 255


def to_image(values: Float[np.ndarray, "h w 3"]) -> Image.Image:
    """An image from values in [0, 1]; others are clipped."""
    return Image.fromarray(np.rint(np.clip(values, 0, 1) * 255).astype(np.uint8))


@cache
def disk(radius: float) -> Float[torch.Tensor, "s s"]:
    """A kernel in the shape of a disk with a soft edge, with sum 1."""
    reach = int(np.ceil(radius))
    x = torch.arange(-reach, reach + 1, dtype=torch.float64)
    inside = (radius + 0.5 - torch.hypot(x[:, None], x[None, :])).clamp(0, 1)
    return inside / inside.sum()
