"""The emoji that ship with the package: 1 379 of them, each drawn by up to twelve artists, at 32 pixels.

One archive holds `index.json` (names, groups, keywords; the licence and source of every style) and a lossless
sheet of pictures for each style. Built by `studies/emojishift/build.py`; every style has its own licence (NOTICE).
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import NamedTuple
from zipfile import ZipFile

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from tracer.core.errors import unknown

ARCHIVE = files("tracer.data.embedded") / "emoji.zip"


class Emoji(NamedTuple):
    """Metadata of an emoji, the same for all styles."""

    hex: str  # code point
    name: str
    group: str
    subgroup: str
    keywords: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Style:
    """The pictures of one style, with its source and licence."""

    name: str
    package: str
    version: str
    licence: str
    author: str
    url: str
    emoji: np.ndarray  # the index in `Archive.emoji` of each picture
    size: int
    columns: int

    @cached_property
    def images(self) -> UInt8[np.ndarray, "n h w 3"]:
        """All pictures on a white background, in the order of `emoji`."""
        with (
            ZipFile(io.BytesIO(ARCHIVE.read_bytes())) as file,
            Image.open(io.BytesIO(file.read(f"{self.name}.webp"))) as sheet,
        ):
            pixels = np.asarray(sheet.convert("RGB"))
        cells = pixels.reshape(-1, self.size, self.columns, self.size, 3).transpose(0, 2, 1, 3, 4)
        return cells.reshape(-1, self.size, self.size, 3)[: len(self.emoji)]

    def pictures(self) -> Iterator[tuple[int, np.ndarray]]:
        """The index of each emoji with its picture."""
        return zip(self.emoji.tolist(), self.images, strict=True)


@dataclass(frozen=True)
class Archive:
    """All emoji and all styles."""

    emoji: tuple[Emoji, ...]
    styles: tuple[Style, ...]

    def style(self, name: str) -> Style:
        for each in self.styles:
            if each.name == name:
                return each
        raise unknown("style of emoji", name, [each.name for each in self.styles])


@cache
def archive() -> Archive:
    """The emoji that ship with the package; a sheet is decoded on first use."""
    with ZipFile(io.BytesIO(ARCHIVE.read_bytes())) as file:
        index = json.loads(file.read("index.json"))
    emoji = [Emoji(**{**each, "keywords": tuple(each["keywords"])}) for each in index["emoji"]]
    fields = ("name", "package", "version", "licence", "author", "url")
    styles = [
        Style(
            **{key: each[key] for key in fields},
            emoji=np.array(each["emoji"], np.int64),
            size=index["size"],
            columns=index["columns"],
        )
        for each in index["styles"]
    ]
    return Archive(tuple(emoji), tuple(styles))
