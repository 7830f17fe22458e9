"""A data set: images by index, with labels, captions, or both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np
from PIL import Image

from tracer.data.classes import Classes, Spec, classes
from tracer.data.formats.values import says_missing
from tracer.data.options import WHOLE, Split
from tracer.storage.images import READING


class Images(Protocol):
    """Images by index, decoded on access. Can be pickled, so that worker processes can use them."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Image.Image: ...


@dataclass(frozen=True)
class Levelled:
    """Images that may have more than eight bits, with the value that is white in those, once it is known."""

    white: float | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Pixels:
    """Images in memory, uint8 of shape [n, h, w, 3]."""

    array: np.ndarray

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: int) -> Image.Image:
        return Image.fromarray(self.array[index])


@dataclass(frozen=True)
class Subset:
    """The images of another collection at `indices`, in that order."""

    images: Images
    indices: np.ndarray

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Image.Image:
        return self.images[int(self.indices[index])]


def origin(images: Images, index: int) -> tuple[Images, int]:
    """The collection that a subset is taken from, and the index of an image in it."""
    while isinstance(images, Subset):
        images, index = images.images, int(images.indices[index])
    return images, index


def with_white(images: Images, white: float | None) -> Images:
    """The images with this white in those of more than eight bits."""
    if isinstance(images, Subset):
        return replace(images, images=with_white(images.images, white))
    return replace(images, white=white and float(white)) if isinstance(images, Levelled) else images


class LeftOut(NamedTuple):
    """What a source holds and no split of it uses: how many of what, and the first of them."""

    count: int
    what: str  # in the plural
    first: str

    def __str__(self) -> str:
        return f"{self.what}: {self.count}, {'such as ' if self.count > 1 else ''}{self.first}"


def left_out(reasons: Iterable[tuple[str, str]]) -> tuple[LeftOut, ...]:
    """The count of each reason and the first name under it, out of pairs of a reason and a name."""
    names: dict[str, list[str]] = {}
    for reason, name in reasons:
        names.setdefault(reason, []).append(name)
    return tuple(LeftOut(len(own), reason, own[0]) for reason, own in names.items())


@dataclass(frozen=True, eq=False)
class Examples:
    """Images, each with an id, a class label (−1: none) and captions (empty: none)."""

    name: str
    images: Images
    ids: Sequence[str]
    labels: np.ndarray
    captions: Sequence[tuple[str, ...]]
    classes: tuple[str, ...] = ()  # the name of each label, as used in prompts
    splits: tuple[str, ...] = ()  # all splits of the source, if it has any
    split: str = ""  # the one of them that these examples are
    detected: tuple[str, ...] = ()  # what was inferred from the source rather than specified, for the report
    left_out: tuple[
        LeftOut, ...
    ] = ()  # of the whole source: with the examples of all splits, it is all there is
    skipped: tuple[str, ...] = ()  # unreadable images, left out of these examples, each with the reason
    templates: tuple[str, ...] = ()  # prompt templates for these classes, if the source has any
    warnings: tuple[str, ...] = ()  # what is probably not meant, each with what mends it
    contents: np.ndarray | None = None  # a hash of each image, uint8 [n, 16], once all have been read

    def __post_init__(self) -> None:
        hashes = self.labels if self.contents is None else self.contents
        sizes = {len(self.images), len(self.ids), len(self.labels), len(self.captions), len(hashes)}
        if len(sizes) != 1:
            raise ValueError(
                f"{self.name}: images, ids, labels and captions differ in number: {sorted(sizes)}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def labelled(self) -> bool:
        return len(self.classes) > 0

    @property
    def white_level(self) -> float | None:
        """The value that is white in images of more than eight bits; None if there are none, or if it is not known."""
        images = self.images
        while isinstance(images, Subset):
            images = images.images
        return images.white if isinstance(images, Levelled) else None

    @property
    def captioned(self) -> bool:
        return any(self.captions)

    def take(self, indices: np.ndarray) -> Examples:
        """The examples at `indices`, in that order."""
        if isinstance(self.images, Pixels):
            images: Images = Pixels(self.images.array[indices])
        else:
            images = Subset(self.images, indices)
        return replace(
            self,
            images=images,
            ids=[self.ids[i] for i in indices],
            labels=self.labels[indices],
            captions=[self.captions[i] for i in indices],
            contents=None if self.contents is None else self.contents[indices],
        )

    @property
    def fingerprint(self) -> str:
        """A short hash of ids, labels, captions and class names. Pixels are not hashed: see `digests`."""
        digest = hashlib.blake2b(digest_size=8)
        for part in (*self.classes, *self.ids):
            digest.update(part.encode(errors="surrogatepass") + b"\0")
        digest.update(np.ascontiguousarray(self.labels, dtype=np.int64).tobytes())
        for texts in self.captions:
            digest.update("\0".join(texts).encode() + b"\1")
        return digest.hexdigest()

    @property
    def digests(self) -> dict[str, str]:
        """A hash of the images (of their ids if they have not been read), labels, captions and class names.

        That of encoded images is also of how they are read, so that other pixels are other data.
        """
        images = self.contents if self.contents is not None else list(self.ids)
        if isinstance(self.images, Subset | Levelled):
            images = [_digest(images), READING, self.white_level]
        parts = {"images": images, "labels": self.labels.astype(np.int64), "captions": list(self.captions)}
        return {name: _digest(part) for name, part in (parts | {"class names": self.classes}).items()}

    @property
    def content_fingerprint(self) -> str:
        """A short hash of `digests`: equal for data with the same images, labels, captions and class names."""
        return _digest(sorted(self.digests.items()))


def assemble(
    name: str,
    images: Images,
    ids: Sequence[str],
    *,
    keys: Sequence[str] | None = None,
    vocabulary: Iterable[str] = (),
    naming: Spec | None = None,
    numbered: bool = False,
    captions: Sequence[tuple[str, ...]] | None = None,
    split: Split = WHOLE,
    detected: Iterable[str] = (),
    left_out: tuple[LeftOut, ...] = (),
    warnings: Iterable[str] = (),
) -> Examples:
    """The examples of one split, with label keys as written in the data (`keys`) and class names from `naming`.

    `numbered` keys count the names of a list from 0, even if these are numbers themselves. The others are of all rows
    of the source, of which `split.rows` are taken, and class names those of all splits, so that every split numbers its
    classes in the same way; a reader of one split adds the keys of others as `vocabulary`.
    """
    if keys is None:
        keys, mapping = [""] * len(ids), Classes((), ())
    else:
        mapping = classes({*keys, *vocabulary}, naming, numbered=numbered)
    examples = Examples(
        name=name,
        images=images,
        ids=ids,
        labels=mapping.labels(keys),
        captions=[()] * len(ids) if captions is None else captions,
        classes=mapping.names,
        splits=split.names,
        split=split.name,
        detected=tuple(filter(None, (*detected, split.note, mapping.how))),
        left_out=left_out,
        warnings=tuple(filter(None, (split.warning, *warnings, mapping.warning))),
    )
    examples = examples if split.rows is None else examples.take(split.rows)
    return replace(examples, warnings=(*examples.warnings, *_missing(examples)))


def _missing(examples: Examples) -> Iterator[str]:
    """A warning if captions look like empty cells."""
    suspects = [i for i, texts in enumerate(examples.captions) if any(map(says_missing, texts))]
    if suspects:
        first = f"{examples.ids[suspects[0]]}: {', '.join(examples.captions[suspects[0]])}"
        yield f"{len(suspects)} captions look like the empty cells of a program, such as that of {first}"


def _digest(part: object) -> str:
    encoded = part.tobytes() if isinstance(part, np.ndarray) else json.dumps(part).encode()
    return hashlib.blake2b(encoded, digest_size=8).hexdigest()
