"""webdataset shards, near or far, whose images are read by their places in the files, in any order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracer.core.errors import UserError
from tracer.data.assembly import assembled
from tracer.data.braces import expanded
from tracer.data.columns import columns
from tracer.data.encoded import Encoded
from tracer.data.examples import Examples
from tracer.data.options import Options
from tracer.data.tar import Sample, reached, samples
from tracer.data.values import text, texts


@dataclass(frozen=True, eq=False)
class Slices(Encoded):
    """Images as slices of larger files, which may lie anywhere that fsspec can reach."""

    urls: tuple[str, ...]
    keys: tuple[str, ...]
    shard: np.ndarray  # which of the urls
    offset: np.ndarray
    size: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    def content(self, index: int) -> bytes:
        system, path = reached(self.urls[self.shard[index]])
        start = int(self.offset[index])
        return system.cat_file(path, start=start, end=start + int(self.size[index]))

    def name(self, index: int) -> str:
        return f"{self.keys[index]} in {self.urls[self.shard[index]]}"


def sharded(pattern: str, options: Options) -> Examples:
    """The examples in the shards that `pattern` stands for: braces, `*`, or a folder of tar files."""
    options.refuse("shards", "separator")
    urls = _urls(pattern)
    found = [sample for url in urls for sample in samples(url)]
    kept = [sample for sample in found if sample.images]
    if not kept:
        raise UserError(f"no images in {pattern}: {len(urls)} shards were read")
    names = dict.fromkeys(name for sample in kept for name in sample.values)
    used = columns(tuple(names), options, pattern, image=options.image or "image")
    short = dict(zip(urls, _short(urls), strict=True))
    imageless = len(found) - len(kept)
    return assembled(
        pattern,
        _slices(kept, options.image),
        [f"{short[sample.url]}/{sample.key}" for sample in kept],
        keys=[text(sample.values.get(used.label)) for sample in kept] if used.label else None,
        naming=options.classes,
        captions=[texts(sample.values.get(used.caption)) for sample in kept] if used.caption else None,
        detected=(
            f"shards: {len(urls)}",
            *(note.replace("column", "member") for note in used.detected[1:]),
            f"without an image: {imageless} samples left out" if imageless else "",
        ),
    )


def _slices(kept: list[Sample], ending: str | None) -> Slices:
    urls = {url: i for i, url in enumerate(dict.fromkeys(sample.url for sample in kept))}
    places = np.array([sample.image(ending) for sample in kept])
    return Slices(
        urls=tuple(urls),
        keys=tuple(sample.key for sample in kept),
        shard=np.array([urls[sample.url] for sample in kept]),
        offset=places[:, 0],
        size=places[:, 1],
    )


def _urls(pattern: str) -> list[str]:
    """The shards, each of which is there."""
    urls: list[str] = []
    for name in expanded(pattern):
        system, path = reached(name)
        if system.isdir(path):
            name = f"{name.rstrip('/')}/*.tar"
            path = f"{path.rstrip('/')}/*.tar"
        matches = sorted(system.glob(path)) if "*" in path else [path] if system.isfile(path) else []
        if not matches:
            raise UserError(f"there is no shard {name}")
        urls += [system.unstrip_protocol(match) if "://" in name else str(match) for match in matches]
    return urls


def _short(urls: list[str]) -> list[str]:
    """As much of the end of each address as tells them apart: where data lie is no part of what they are."""
    for length in range(1, 1 + max(url.count("/") for url in urls)):
        short = ["/".join(url.split("/")[-length:]) for url in urls]
        if len(set(short)) == len(urls):
            return short
    return urls
