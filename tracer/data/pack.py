"""Resize a data set once, into one tar file in the webdataset format."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import tracer.models.torchvision_compat  # noqa: F401  (before torchvision)
from tracer.core.errors import UserError, at_least
from tracer.data.encoded import content
from tracer.data.examples import Examples
from tracer.data.scan import Progress
from tracer.storage.atomic import write_file
from tracer.storage.room import require_room

QUALITY = 95  # of JPEG
SAMPLED = 16  # images whose size stands for that of all
RECORD = 2048  # bytes beside an image: two headers, label and caption, rounding up


def pack(
    examples: Examples,
    out: Path,
    *,
    side: int = 256,
    lossless: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write images whose shorter side is `side`, with labels and captions; `progress` gets the number written.

    A JPEG that is already small enough is copied byte for byte. If `side` is the image size of the model and
    `lossless` is set, evaluation sees exactly the pixels that it makes of the originals; otherwise they differ
    by the loss of JPEG and of resizing twice.
    """
    check_place(out, side)
    _require_room(examples, out, side, lossless)

    def fill(path: Path) -> None:
        with tarfile.open(path, mode="w", format=tarfile.GNU_FORMAT) as shard:
            for index in range(len(examples)):
                _add(shard, examples, index, side, lossless)
                if progress is not None:
                    progress(index + 1, len(examples))

    write_file(out, fill)


def _require_room(examples: Examples, out: Path, side: int, lossless: bool) -> None:
    """Raise DiskFull if some of the images say that all of them have no room."""
    some = range(0, len(examples), max(1, len(examples) // SAMPLED))
    sizes = [len(_encode(examples, index, side, lossless)[1]) for index in some]
    needed = len(examples) * (sum(sizes) / max(1, len(sizes)) + RECORD)
    less = "make room, give --out on another disk, or a smaller --side"
    require_room(out, needed, f"{out.name}", f"{less}, or leave out --lossless" if lossless else less)


def check_place(out: Path, side: int) -> None:
    """Raise UserError early, before a long scan, if `out` cannot be written."""
    at_least(1, side=side)
    if out.suffix != ".tar":
        raise UserError(f"--out {out}: a packed data set is a tar file; use --out {out.with_suffix('.tar')}")
    if out.exists():
        raise UserError(f"{out} is already there: choose another --out")


def _add(shard: tarfile.TarFile, examples: Examples, index: int, side: int, lossless: bool) -> None:
    ending, image = _encode(examples, index, side, lossless)
    record: dict[str, Any] = {"id": examples.ids[index]}
    if examples.labelled and examples.labels[index] >= 0:
        record["label"] = examples.classes[examples.labels[index]]
    if examples.captions[index]:
        record["caption"] = list(examples.captions[index])
    text = json.dumps(record, ensure_ascii=False)
    for kind, data in ((ending, image), ("json", text.encode(errors="backslashreplace"))):
        member = tarfile.TarInfo(f"{index:09d}.{kind}")
        member.size = len(data)
        shard.addfile(member, io.BytesIO(data))


def _encode(examples: Examples, index: int, side: int, lossless: bool) -> tuple[str, bytes]:
    """The file ending and the bytes of an image, resized if it is too large."""
    # Imported late because it is slow.
    from torchvision.transforms import InterpolationMode, Resize

    image, stored = examples.images[index], content(examples.images, index)
    if min(image.size) <= side and stored is not None and stored[:2] == b"\xff\xd8":
        return "jpg", stored
    buffer = io.BytesIO()
    small = image if min(image.size) <= side else Resize(side, InterpolationMode.BICUBIC)(image)
    if lossless:
        small.save(buffer, "PNG", compress_level=1)
        return "png", buffer.getvalue()
    small.save(buffer, "JPEG", quality=QUALITY, subsampling=0)
    return "jpg", buffer.getvalue()
