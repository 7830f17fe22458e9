"""webdataset shards: tar files whose members with the same stem make one example.

The tar headers are read once; after that every image is read by its place in the file, so that any order is
possible and nothing is ever unpacked.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from fsspec.core import url_to_fs

from tracer.data.assembly import assembled
from tracer.data.braces import expanded
from tracer.data.columns import columns
from tracer.data.encoded import SUFFIXES, Encoded
from tracer.data.examples import Examples
from tracer.data.options import Options
from tracer.data.values import text, texts
from tracer.errors import UserError, unknown

TEXTS = ("txt", "cls", "caption", "text", "label")  # members that are themselves one value
LARGEST = 1 << 20  # no caption is longer than this


@dataclass(frozen=True)
class Slices(Encoded):
    """Images as slices of larger files, which may lie anywhere that fsspec can reach."""

    urls: tuple[str, ...]
    shard: np.ndarray
    offset: np.ndarray
    size: np.ndarray
    keys: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.keys)

    def content(self, index: int) -> bytes:
        system, path = url_to_fs(self.urls[self.shard[index]])
        start = int(self.offset[index])
        return system.cat_file(path, start=start, end=start + int(self.size[index]))

    def name(self, index: int) -> str:
        return f"{self.keys[index]} in {self.urls[self.shard[index]]}"


@dataclass
class Sample:
    """The members of one key: where its images lie, and the values of the rest."""

    images: dict[str, tuple[int, int]] = field(default_factory=dict)  # ending -> offset and size
    values: dict[str, Any] = field(default_factory=dict)

    def image(self, ending: str | None, key: str) -> tuple[int, int]:
        """The image with this ending, else the first."""
        if ending is None:
            return next(iter(self.images.values()))
        if ending not in self.images:
            raise unknown(f"image of the sample {key}", ending, self.images)
        return self.images[ending]


def sharded(pattern: str, options: Options) -> Examples:
    """The examples in the shards that `pattern` stands for: braces, `*`, or a folder of tar files."""
    options.refuse("shards", "separator")
    urls = _urls(pattern)
    found = [(shard, key, sample) for shard, url in enumerate(urls) for key, sample in _samples(url).items()]
    kept = [(shard, key, sample) for shard, key, sample in found if sample.images]
    if not kept:
        raise UserError(f"no images in {pattern}: {len(urls)} shards were read")
    images = [sample.image(options.image, key) for _, key, sample in kept]
    names = dict.fromkeys(name for _, _, sample in kept for name in sample.values)
    used = columns(tuple(names), options, pattern, image=options.image or "image")
    rows = [sample.values for _, _, sample in kept]
    return assembled(
        pattern,
        Slices(
            urls=tuple(urls),
            shard=np.array([shard for shard, _, _ in kept]),
            offset=np.array([offset for offset, _ in images]),
            size=np.array([size for _, size in images]),
            keys=tuple(key for _, key, _ in kept),
        ),
        [f"{PurePosixPath(urls[shard]).name}/{key}" for shard, key, _ in kept],
        keys=[text(row.get(used.label)) for row in rows] if used.label else None,
        naming=options.classes,
        captions=[texts(row.get(used.caption)) for row in rows] if used.caption else None,
        detected=(
            f"shards: {len(urls)}",
            *(note.replace("column", "member") for note in used.detected[1:]),
            f"without an image: {len(found) - len(kept)} samples left out" if len(kept) < len(found) else "",
        ),
    )


def _urls(pattern: str) -> list[str]:
    """The shards, each of which is there."""
    urls: list[str] = []
    for name in expanded(pattern):
        system, path = url_to_fs(name)
        if system.isdir(path):
            name = f"{name.rstrip('/')}/*.tar"
            path = f"{path.rstrip('/')}/*.tar"
        matches = sorted(system.glob(path)) if "*" in path else [path] if system.isfile(path) else []
        if not matches:
            raise UserError(f"there is no shard {name}")
        urls += [system.unstrip_protocol(match) if "://" in name else str(match) for match in matches]
    return urls


def _samples(url: str) -> dict[str, Sample]:
    """The samples of one shard by their keys, in its order."""
    system, path = url_to_fs(url)
    samples: dict[str, Sample] = {}
    try:
        with system.open(path, "rb") as file, tarfile.open(fileobj=file, mode="r:") as shard:
            size = system.size(path)
            for member in _regular(shard, url):
                if member.offset_data + member.size > size:
                    raise UserError(f"the shard {url} is cut off in the middle of {member.name}")
                key, ending = _parts(member.name)
                _add(samples.setdefault(key, Sample()), ending, member, shard, url)
    except (tarfile.TarError, OSError, EOFError) as error:
        raise UserError(f"the shard {url} cannot be read as a plain tar file: {error}") from error
    return samples


def _regular(shard: tarfile.TarFile, url: str) -> Iterator[tarfile.TarInfo]:
    """The plain files in a shard: links and devices are passed over, a way out of the folder is refused."""
    for member in shard:
        way = PurePosixPath(member.name)
        if way.is_absolute() or ".." in way.parts:
            raise UserError(f"the shard {url} holds {member.name!r}, which points outside of it: refused")
        if member.isreg() and not member.issparse() and not way.name.startswith("."):
            yield member


def _parts(name: str) -> tuple[str, str]:
    """The key of a member and its ending, cut at the first dot of its last part."""
    way = PurePosixPath(name)
    stem, _, ending = way.name.partition(".")
    return (way.parent / stem).as_posix(), ending.lower()


def _add(sample: Sample, ending: str, member: tarfile.TarInfo, shard: tarfile.TarFile, url: str) -> None:
    if ending in sample.images or ending in sample.values:
        raise UserError(f"the shard {url} holds {member.name} twice")
    if f".{ending}" in SUFFIXES:
        sample.images[ending] = (member.offset_data, member.size)
    elif ending in TEXTS or ending == "json":
        if member.size > LARGEST:
            raise UserError(
                f"{member.name} in the shard {url} is too long for a caption or label: {member.size} bytes"
            )
        stored = shard.extractfile(member)
        content = stored.read() if stored else b""
        sample.values |= (
            _fields(content, f"{member.name} in {url}") if ending == "json" else {ending: _said(content)}
        )


def _said(content: bytes) -> str:
    return content.decode("utf-8-sig", errors="replace").strip()


def _fields(content: bytes, where: str) -> dict[str, Any]:
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON: {error}") from error
    return fields if isinstance(fields, dict) else {}
