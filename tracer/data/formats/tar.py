"""The index of one webdataset shard: the byte range of each image in the tar file, and its label and captions.

Members with the same stem make one sample: an image, and its values in `.txt`, `.cls` or `.json`. Only the
headers and values are read; nothing is unpacked to disk.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from fsspec.core import url_to_fs

from tracer.core.errors import UserError, unknown
from tracer.data.encoded import SUFFIXES
from tracer.data.formats.values import distinct_keys

VALUES = ("txt", "cls", "caption", "text", "label", "json")
MAX_BYTES = 1 << 20  # of a caption or label; anything longer is an error


@dataclass(slots=True)
class Sample:
    """The members with one key: the byte ranges of images, and the values of the rest."""

    url: str
    key: str
    images: dict[str, tuple[int, int]] = field(default_factory=dict)  # ending -> offset and size
    values: dict[str, Any] = field(default_factory=dict)

    def image(self, ending: str | None) -> tuple[int, int]:
        """Offset and size of the image with this ending; of the first image if `ending` is None."""
        if ending is None:
            return next(iter(self.images.values()))
        if ending not in self.images:
            raise unknown(f"image of {self.key} in {self.url}", ending, self.images)
        return self.images[ending]


def resolve_url(url: str) -> tuple[Any, str]:
    """The fsspec file system of an address, and the path in it."""
    try:
        return url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise UserError(f"{url} cannot be reached: {error}") from error


def read_samples(url: str) -> list[Sample]:
    """The samples of one shard, in the order of the file."""
    system, path = resolve_url(url)
    samples: dict[str, Sample] = {}
    try:
        with system.open(path, "rb") as file, tarfile.open(fileobj=file, mode="r:") as shard:
            size = system.size(path)
            for member in _regular(shard, url):
                if member.offset_data + member.size > size:
                    raise UserError(f"the shard {url} is cut off in the middle of {member.name}")
                _add(samples, member, shard, url)
            _check_end(shard, file, url)
    except (tarfile.TarError, OSError, EOFError, ValueError, OverflowError, LookupError) as error:
        raise UserError(f"the shard {url} cannot be read as a plain tar file: {error}") from error
    return list(samples.values())


def _check_end(shard: tarfile.TarFile, file: IO[bytes], url: str) -> None:
    """Raise UserError unless the shard ends in zeros: `tarfile` silently takes a damaged header for the end."""
    file.seek(shard.offset)
    end = file.read(MAX_BYTES)
    if not end or end.strip(b"\0"):
        raise UserError(f"the shard {url} is cut off or damaged after {len(shard.getmembers())} members")


def _regular(shard: tarfile.TarFile, url: str) -> Iterator[tarfile.TarInfo]:
    """The regular files of a shard. Links and devices are skipped; a path that leaves the folder is an error."""
    for member in shard:
        if member.name.startswith("/") or ".." in member.name.split("/"):
            raise UserError(f"the shard {url} holds {member.name!r}, which points outside of it: refused")
        if member.isreg() and member.issparse():
            raise UserError(f"the shard {url} holds {member.name} as a sparse file: pack it without --sparse")
        if member.isreg():
            yield member


def _parts(name: str) -> tuple[str, str]:
    """The key and the ending of a member, split at the first dot of its file name."""
    folder, slash, last = name.removeprefix("./").rpartition("/")
    stem, _, ending = last.partition(".")
    return f"{folder}{slash}{stem}", ending.lower()


def _add(samples: dict[str, Sample], member: tarfile.TarInfo, shard: tarfile.TarFile, url: str) -> None:
    key, ending = _parts(member.name)
    if not key or key.endswith("/") or (f".{ending}" not in SUFFIXES and ending not in VALUES):
        return
    sample = samples.setdefault(key, Sample(url, key))
    if ending in sample.images or ending in sample.values:
        raise UserError(f"the shard {url} holds {member.name} twice")
    if ending not in VALUES:
        sample.images[ending] = (member.offset_data, member.size)
        return
    if member.size > MAX_BYTES:
        raise UserError(f"{member.name} in {url} is too long for a caption or label: {member.size} bytes")
    stored = shard.extractfile(member)  # into memory, not to disk
    content = stored.read() if stored else b""
    where = f"{member.name} in {url}"
    for name, value in (
        _fields(content, where) if ending == "json" else {ending: _text(content, where)}
    ).items():
        if sample.values.setdefault(name, value) != value:
            raise UserError(f"{where}: another {name!r:.60} than beside it")


def _text(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:  # two names could become one if its bytes were replaced
        raise UserError(f"{where} is not UTF-8 text: {error}") from error


def _fields(content: bytes, where: str) -> dict[str, Any]:
    try:
        fields = json.loads(content, object_pairs_hook=distinct_keys)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON: {error}") from error
    return fields if isinstance(fields, dict) else {}
