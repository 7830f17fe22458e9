"""webdataset shards, local or remote. Images are read by offset, so random access works."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tracer.core.errors import UserError
from tracer.data.encoded import Encoded
from tracer.data.examples import Examples
from tracer.data.formats.assembly import assemble
from tracer.data.formats.braces import expand_braces
from tracer.data.formats.columns import find_columns
from tracer.data.formats.split_column import RowSplits, row_splits
from tracer.data.formats.tar import Sample, read_samples, resolve_url
from tracer.data.formats.values import text, texts
from tracer.data.options import Options, sort_splits, splits_by_name


@dataclass(frozen=True, eq=False)
class Slices(Encoded):
    """Images as byte ranges of larger files, at any address that fsspec supports."""

    urls: tuple[str, ...]
    keys: tuple[str, ...]
    shard: np.ndarray  # index into `urls`
    offset: np.ndarray
    size: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    def content(self, index: int) -> bytes:
        system, path = resolve_url(self.urls[self.shard[index]])
        start = int(self.offset[index])
        return system.cat_file(path, start=start, end=start + int(self.size[index]))

    def name(self, index: int) -> str:
        return f"{self.keys[index]} in {self.urls[self.shard[index]]}"

    @property
    def place(self) -> str | None:
        local = not any("://" in url for url in self.urls)
        return str(Path(self.urls[0]).absolute().parent) if local else None

    def file(self, index: int) -> tuple[Path, str]:
        return Path(self.urls[self.shard[index]]).absolute(), f"{self.offset[index]}+{self.size[index]}"


def read_shards(pattern: str, options: Options) -> Examples:
    """Read the shards that `pattern` names: with braces, with `*`, or a folder of tar files."""
    options.refuse("shards", "separator")
    urls = _urls(pattern)
    every = [sample for url in urls for sample in read_samples(url)]
    usable = [sample for sample in every if sample.images]
    if not usable:
        raise UserError(f"no images in {pattern}: {len(urls)} shards were read")
    names = dict.fromkeys(name for sample in usable for name in sample.values)
    columns = find_columns(tuple(names), options, pattern, image=options.image or "image")
    members = row_splits(
        {name: [each.values.get(name) for each in usable] for name in names}, columns, pattern
    )
    split = _with_names(members, usable, urls, pattern)
    short = dict(zip(urls, _shorten(urls), strict=True))
    imageless = len(every) - len(usable)
    examples = assemble(
        pattern,
        _slices(usable, options.image),
        [f"{short[sample.url]}/{sample.key}" for sample in usable],
        keys=[text(sample.values.get(columns.label)) for sample in usable] if columns.label else None,
        naming=options.classes,
        captions=[texts(sample.values.get(columns.caption)) for sample in usable]
        if columns.caption
        else None,
        detected=(
            f"shards: {len(urls)}",
            *(note.replace("column", "member") for note in columns.detected[1:]),
            f"without an image: {imageless} samples left out" if imageless else "",
            split.note,
        ),
        splits=split.names,
        warnings=(split.warning,),
    )
    return split.take(examples, options, pattern)


def _with_names(members: RowSplits, samples: list[Sample], urls: list[str], pattern: str) -> RowSplits:
    """The split of each sample by a member, else by the name of its shard: train-000.tar, val-000.tar.

    Names count if they name several splits. Raises UserError if some do and others do not, or if members disagree.
    """
    short = _shorten(urls)
    words = [re.findall(r"[^\W\d_]+", name.lower()) for name in short]
    splits = splits_by_name({word for own in words for word in own})
    named = [{splits[word] for word in own if word in splits} for own in words]
    listed = sort_splits(set().union(*named))
    if len(listed) < 2:
        return members
    unclear = [name for name, own in zip(short, named, strict=True) if len(own) != 1]
    if unclear:
        raise UserError(
            f"{pattern} holds shards of several splits ({', '.join(listed)}) beside {unclear[0]}: give those to train "
            "on, with braces or *, and others with --held-out"
        )
    split_of = {url: next(iter(own)) for url, own in zip(urls, named, strict=True)}
    of_row = [split_of[sample.url] for sample in samples]
    if members.of_row and members.of_row != of_row:
        raise UserError(f"{pattern}: the names of the shards and a member name different splits: rename one")
    return RowSplits(of_row, f"split: by the names of the shards, {', '.join(listed)}")


def _slices(samples: list[Sample], ending: str | None) -> Slices:
    urls = {url: i for i, url in enumerate(dict.fromkeys(sample.url for sample in samples))}
    ranges = np.array([sample.image(ending) for sample in samples])
    return Slices(
        urls=tuple(urls),
        keys=tuple(sample.key for sample in samples),
        shard=np.array([urls[sample.url] for sample in samples]),
        offset=ranges[:, 0],
        size=ranges[:, 1],
    )


def _urls(pattern: str) -> list[str]:
    """The addresses of all shards; raises UserError if one does not exist."""
    urls: list[str] = []
    for name in expand_braces(pattern):
        system, path = resolve_url(name)
        if system.isdir(path):
            name = f"{name.rstrip('/')}/*.tar"
            path = f"{path.rstrip('/')}/*.tar"
        matches = sorted(system.glob(path)) if "*" in path else [path] if system.isfile(path) else []
        if not matches:
            raise UserError(f"there is no shard {name}")
        urls += [system.unstrip_protocol(match) if "://" in name else str(match) for match in matches]
    return urls


def _shorten(urls: list[str]) -> list[str]:
    """The shortest endings that keep addresses distinct, so that ids do not change when the data are moved."""
    for length in range(1, 1 + max(url.count("/") for url in urls)):
        short = ["/".join(url.split("/")[-length:]) for url in urls]
        if len(set(short)) == len(urls):
            return short
    return urls
