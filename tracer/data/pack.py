"""A data set once resized: one tar file of small images, which any reader of webdataset shards can read."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

from PIL import Image

from tracer.core.errors import UserError, at_least
from tracer.data.encoded import content
from tracer.data.examples import Examples
from tracer.data.scan import Progress
from tracer.storage.atomic import write_file

QUALITY = 95


def pack(
    examples: Examples,
    out: Path,
    *,
    side: int = 256,
    lossless: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write images whose shorter side is `side`, with labels and captions; `progress` hears how many are written.

    A smaller image is kept byte for byte. With side = the model's size and `lossless`, evaluation sees the very
    pixels that it would have made of the originals; else they differ by what JPEG and a second resizing cost.
    """
    check_place(out, side)

    def fill(beside: Path) -> None:
        with tarfile.open(beside, mode="w", format=tarfile.GNU_FORMAT) as shard:
            for index in range(len(examples)):
                _add(shard, examples, index, side, lossless)
                if progress is not None:
                    progress(index + 1, len(examples))

    write_file(out, fill)


def check_place(out: Path, side: int) -> None:
    """Refuse what cannot be written, before anybody looks at a million images."""
    at_least(1, side=side)
    if out.suffix != ".tar":
        raise UserError(f"--out {out}: a packed data set is a tar file; use --out {out.with_suffix('.tar')}")
    if out.exists():
        raise UserError(f"{out} is already there: choose another --out")


def _add(shard: tarfile.TarFile, examples: Examples, index: int, side: int, lossless: bool) -> None:
    ending, image = _small(examples, index, side, lossless)
    said: dict[str, Any] = {"id": examples.ids[index]}
    if examples.labelled and examples.labels[index] >= 0:
        said["label"] = examples.classes[examples.labels[index]]
    if examples.captions[index]:
        said["caption"] = list(examples.captions[index])
    for kind, stored in ((ending, image), ("json", json.dumps(said, ensure_ascii=False).encode())):
        member = tarfile.TarInfo(f"{index:09d}.{kind}")
        member.size = len(stored)
        shard.addfile(member, io.BytesIO(stored))


def _small(examples: Examples, index: int, side: int, lossless: bool) -> tuple[str, bytes]:
    """The ending and the bytes of an image."""
    image, stored = examples.images[index], content(examples.images, index)
    if min(image.size) <= side and stored is not None and stored[:2] == b"\xff\xd8":
        return "jpg", stored
    buffer = io.BytesIO()
    small = _resized(image, side)
    if lossless:
        small.save(buffer, "PNG", compress_level=1)
        return "png", buffer.getvalue()
    small.save(buffer, "JPEG", quality=QUALITY, subsampling=0)
    return "jpg", buffer.getvalue()


def _resized(image: Image.Image, side: int) -> Image.Image:
    """The shorter side becomes `side`, as torchvision's Resize rounds it; what is small stays as it is."""
    short, long = sorted(image.size)
    if short <= side:
        return image
    other = int(side * long / short)
    size = (side, other) if image.width <= image.height else (other, side)
    return image.resize(size, Image.Resampling.BICUBIC)
