"""webdataset shards, local or remote. Images are read by offset, so random access works.

Members of a tar file with the same stem make one sample: an image, and its values in `.txt`, `.cls` or `.json`. A stem
ends at the first dot, as in webdataset, or at the last one where that makes a sample of its own, as in `0.2mm.png`.
Only the headers and values are read at first; nothing is unpacked to disk.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from fsspec.core import url_to_fs

from tracer.core.errors import UserError, unknown
from tracer.data.encoded import Encoded
from tracer.data.examples import Examples, assemble, left_out
from tracer.data.formats.columns import find_columns, row_splits
from tracer.data.formats.values import parse_json
from tracer.data.options import Options, Splits, splits_by_name
from tracer.storage.images import SUFFIXES

VALUES = ("txt", "cls", "caption", "text", "label", "json")
MAX_BYTES = 1 << 20  # of a caption or label; anything longer is an error
BRACES = re.compile(r"\{([^{}]*)\}")
LIMIT = 1_000_000  # shards in one range


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
    shards = [read_samples(url) for url in urls]
    usable = [sample for samples, _ in shards for sample in samples if sample.images]
    if not usable:
        raise UserError(f"no images in {pattern}: {len(urls)} shards were read")
    names = dict.fromkeys(name for sample in usable for name in sample.values)
    values = {name: [sample.values.get(name) for sample in usable] for name in names}
    columns = find_columns(tuple(names), options, pattern, image=options.image or "image")
    short = dict(zip(urls, _shorten(urls), strict=True))
    splits = _with_names(row_splits(values, columns, pattern), usable, short, pattern)
    return assemble(
        pattern,
        _slices(usable, options.image),
        [f"{short[sample.url]}/{sample.key}" for sample in usable],
        keys=columns.keys(values, pattern),
        naming=options.classes,
        captions=columns.captions(values, pattern),
        split=splits.choose(options, pattern),
        detected=(
            f"shards: {len(urls)}",
            *columns.detected("member")[1:],
        ),
        left_out=left_out(_unused(shards, options.image)),
    )


def _unused(shards: Iterable[Shard], ending: str | None) -> Iterator[tuple[str, str]]:
    """Members of the shards that are not used, each after the reason; of several images of a sample one is used."""
    for samples, passed_over in shards:
        yield from passed_over
        for sample in samples:
            if not sample.images:
                yield "samples without an image", sample.key
            used = ending or next(iter(sample.images), None)
            yield from (
                ("further images of a sample", f"{sample.key}.{each}")
                for each in sample.images
                if each != used
            )


def _with_names(members: Splits, samples: list[Sample], short: dict[str, str], pattern: str) -> Splits:
    """The split of each sample by a member, else by the name of its shard: train-000.tar, val-000.tar.

    Names count if they name several splits. Raises UserError if some do and others do not, or if members disagree.
    """
    words = {url: re.findall(r"[^\W\d_]+", name.lower()) for url, name in short.items()}
    splits = splits_by_name({word for own in words.values() for word in own})
    named = {url: [splits[word] for word in own if word in splits] for url, own in words.items()}
    several = Splits([split for own in named.values() for split in own]).names
    if len(several) < 2:
        return members
    unclear = next((short[url] for url, own in named.items() if len(set(own)) != 1), None)
    if unclear is not None:
        raise UserError(
            f"{pattern} holds shards of several splits ({', '.join(several)}) beside {unclear}: give those to train "
            "on, with braces or *, and others with --held-out"
        )
    of_row = [named[sample.url][0] for sample in samples]
    if members.of_row and members.of_row != of_row:
        raise UserError(f"{pattern}: the names of the shards and a member name different splits: rename one")
    return Splits(of_row, "splits by the names of the shards")


def _slices(samples: list[Sample], ending: str | None) -> Slices:
    """The image of each sample with this ending; the first image if `ending` is None."""
    for sample in samples:
        if ending is not None and ending not in sample.images:
            raise unknown(f"image of {sample.key} in {sample.url}", ending, sample.images)
    urls = {url: i for i, url in enumerate(dict.fromkeys(sample.url for sample in samples))}
    ranges = np.array([sample.images[ending or next(iter(sample.images))] for sample in samples])
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


def expand_braces(pattern: str) -> list[str]:
    """All names that the pattern stands for, in order."""
    parts = BRACES.split(pattern)  # what stands outside and inside of braces, in turns
    choices = [_choices(part, pattern) if place % 2 else [part] for place, part in enumerate(parts)]
    return list(map("".join, product(*choices)))


def _choices(inside: str, pattern: str) -> list[str]:
    """The alternatives of one pair of braces: a list, or a range that keeps leading zeros."""
    first, dots, last = inside.partition("..")
    if not dots:
        return inside.split(",")
    if not (re.fullmatch(r"[0-9]{1,9}", first) and re.fullmatch(r"[0-9]{1,9}", last)):
        raise UserError(f"{pattern}: the range {{{inside}}} must go from a number to a number")
    start, stop = int(first), int(last)
    if not 0 <= stop - start < LIMIT:
        raise UserError(f"{pattern}: the range {{{inside}}} must count up, over less than {LIMIT:,} shards")
    width = max(len(first), len(last)) if first.startswith("0") or last.startswith("0") else 0
    return [f"{number:0{width}d}" for number in range(start, stop + 1)]


@dataclass(slots=True)
class Sample:
    """The members with one key: the byte ranges of images, and the values of the rest."""

    url: str
    key: str
    images: dict[str, tuple[int, int]] = field(default_factory=dict)  # ending -> offset and size
    values: dict[str, Any] = field(default_factory=dict)


def resolve_url(url: str) -> tuple[Any, str]:
    """The fsspec file system of an address, and the path in it."""
    try:
        return url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise UserError(f"{url} cannot be reached: {error}") from error


Shard = tuple[
    list[Sample], list[tuple[str, str]]
]  # its samples, and members of none: the reason and the name


def read_samples(url: str) -> Shard:
    """The samples of one shard, in the order of the file, and members of no sample: the reason and the name."""
    system, path = resolve_url(url)
    members: list[tarfile.TarInfo] = []
    passed_over: list[tuple[str, str]] = []
    samples: dict[str, Sample] = {}
    try:
        with system.open(path, "rb") as file, tarfile.open(fileobj=file, mode="r:") as shard:
            size = system.size(path)
            for member in shard:
                if member.name.startswith("/") or ".." in member.name.split("/"):
                    raise UserError(
                        f"the shard {url} holds {member.name!r}, which points outside of it: refused"
                    )
                if not member.isreg():
                    if not member.isdir():
                        passed_over.append(("links and devices", member.name))
                    continue
                if member.issparse():
                    raise UserError(
                        f"the shard {url} holds {member.name} as a sparse file: pack it without --sparse"
                    )
                if member.offset_data + member.size > size:
                    raise UserError(f"the shard {url} is cut off in the middle of {member.name}")
                members.append(member)
            keys = _keys(members)
            for member in members:
                if member in keys:
                    _add(samples, *keys[member], member, shard, url)
                else:
                    passed_over.append((_unread(member.name), member.name))
            file.seek(shard.offset)
            end = file.read(MAX_BYTES)
            if not end or end.strip(b"\0"):  # `tarfile` silently takes a damaged header for the end
                count = len(shard.getmembers())
                raise UserError(f"the shard {url} is cut off or damaged after {count} members")
    except (tarfile.TarError, OSError, EOFError, ValueError, OverflowError, LookupError) as error:
        raise UserError(f"the shard {url} cannot be read as a plain tar file: {error}") from error
    return list(samples.values()), passed_over


def _keys(members: list[tarfile.TarInfo]) -> dict[tarfile.TarInfo, tuple[str, str]]:
    """The key of the sample that each member belongs to, and its ending; members of no sample are left out.

    The ending begins after the first dot of the file name. Where that is no known one, as in 0.2mm.png, it is what
    follows the last dot, if the members of that stem name an image and a value, or if no sample has the shorter stem:
    else 1.mask.png is a further image of the sample 1.
    """
    plain, dotted = dict[tarfile.TarInfo, tuple[str, str]](), dict[tarfile.TarInfo, tuple[str, str, str]]()
    for member in members:
        folder, slash, name = member.name.removeprefix("./").rpartition("/")
        stem, _, ending = name.partition(".")
        long_stem, _, last = name.rpartition(".")
        if not stem:  # hidden
            continue
        if _known(ending.lower()):
            plain[member] = f"{folder}{slash}{stem}", ending.lower()
        elif "." in ending and _known(last.lower()):
            dotted[member] = f"{folder}{slash}{stem}", f"{folder}{slash}{long_stem}", last.lower()
    stems = {key for key, _ in plain.values()}
    endings: dict[str, set[bool]] = {}
    for _, key, last in dotted.values():
        endings.setdefault(key, set()).add(last in VALUES)
    own = {key for short, key, _ in dotted.values() if len(endings[key]) == 2 or short not in stems}
    return plain | {member: (key, last) for member, (_, key, last) in dotted.items() if key in own}


def _known(ending: str) -> bool:
    return f".{ending}" in SUFFIXES or ending in VALUES


def _unread(name: str) -> str:
    """Why a member belongs to no sample."""
    own = name.rpartition("/")[2]
    last = own.rpartition(".")[2].lower()
    if own.startswith("."):
        return "hidden members"
    if not _known(last):
        return "members of kinds that are not read"
    return f"further {'values' if last in VALUES else 'images'} of a sample"


def _add(
    samples: dict[str, Sample],
    key: str,
    ending: str,
    member: tarfile.TarInfo,
    shard: tarfile.TarFile,
    url: str,
) -> None:
    """Add a member to the sample of its key."""
    sample = samples.setdefault(key, Sample(url, key))
    if ending in sample.images or ending in sample.values:
        raise UserError(f"the shard {url} holds {member.name} twice")
    if ending not in VALUES:
        sample.images[ending] = (member.offset_data, member.size)
        return
    where = f"{member.name} in {url}"
    if member.size > MAX_BYTES:
        raise UserError(f"{where} is too long for a caption or label: {member.size} bytes")
    stored = shard.extractfile(member)  # into memory, not to disk
    content = stored.read() if stored else b""
    if ending == "json":
        parsed = parse_json(content, where)
        values = parsed if isinstance(parsed, dict) else {}
    else:
        try:
            values = {ending: content.decode("utf-8-sig").strip()}
        except UnicodeDecodeError as error:  # two names could become one if its bytes were replaced
            raise UserError(f"{where} is not UTF-8 text: {error}") from error
    for name, value in values.items():
        if sample.values.setdefault(name, value) != value:
            raise UserError(f"{where}: another {name!r:.60} than beside it")
