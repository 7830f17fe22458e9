"""From JPEG files to a batch: ours against the usual PIL and torchvision code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from studies.bench.timing import Timer, Times
from tracer.data.encoded import Files
from tracer.data.examples import Examples
from tracer.data.pack import pack
from tracer.data.sources import load
from tracer.data.transforms import Transform
from tracer.models.open_clip_compat import open_clip


def photographs(folder: Path, size: tuple[int, int], count: int = 16) -> Files:
    """JPEGs of quality 90 with smooth areas and grain, as in photographs."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    width, height = size
    for number in range(count):
        coarse = Image.fromarray(rng.integers(256, size=(12, 16, 3), dtype=np.uint8))
        smooth = np.asarray(coarse.resize(size, Image.Resampling.BICUBIC), dtype=np.float32)
        grain = rng.normal(0, 5, (height, width, 3)).astype(np.float32)
        Image.fromarray(np.clip(smooth + grain, 0, 255).astype(np.uint8)).save(
            folder / f"{number}.jpg", quality=90
        )
    return Files(folder, tuple(f"{number}.jpg" for number in range(count)))


def pipeline(folder: Path, size: tuple[int, int], timer: Timer, target: int = 224) -> tuple[Times, float]:
    """Times of a batch, and the mean difference between JPEG draft mode and full decoding, in levels of 255."""
    files = photographs(folder / "photos", size)
    preprocess: dict[str, Any] = {"size": target, "interpolation": "bicubic"}
    packed = _packed(files, folder / "packed.tar")
    everything = range(len(files))
    full, drafts = (Transform(preprocess, "crop+flip", drafts=each) for each in (False, True))
    plain = _plain(target)

    def ours(transform: Transform, images: Any) -> Tensor:
        return transform.batch(images, everything, (np.random.default_rng(i) for i in everything))

    times = timer(
        {
            "PIL and torchvision": lambda: torch.stack(
                [plain(Image.open(files.name(i))) for i in everything]
            ),
            "ours, decoded in full": lambda: ours(full, files),
            "ours": lambda: ours(drafts, files),
            "ours, packed": lambda: ours(drafts, packed.images),
        },
    )
    gap = (ours(full, files).float() - ours(drafts, files).float()).abs().mean()
    return times, float(gap)


def _packed(files: Files, out: Path) -> Examples:
    count = len(files)
    examples = Examples(
        "photos", files, list(files.paths), np.zeros(count, np.int64), [()] * count, ("photo",)
    )
    pack(examples, out)
    return load(out)


def _plain(target: int) -> Any:
    """The training transform of released recipes."""
    from torchvision import transforms

    return transforms.Compose(
        [
            lambda image: image.convert("RGB"),
            transforms.RandomResizedCrop(
                target, scale=(0.9, 1.0), interpolation=transforms.InterpolationMode.BICUBIC
            ),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD),
        ]
    )
