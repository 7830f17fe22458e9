"""The emoji that ship with the package: 1 379 of them, each drawn by up to twelve artists, at 32 pixels.

One archive holds `index.json` (names, groups, keywords; the licence and source of every style) and a lossless
sheet of pictures for each style. `studies/emojishift/build.py` made it; every style has its own licence (NOTICE).
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

ARCHIVE = files("tracer.data") / "emoji.zip"


class Emoji(NamedTuple):
    """What is known of an emoji, whoever draws it."""

    hex: str  # its code point
    name: str
    group: str
    subgroup: str
    keywords: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Style:
    """All that one artist drew."""

    name: str
    package: str
    version: str
    licence: str
    author: str
    url: str
    emoji: np.ndarray  # the number of the emoji in each picture
    size: int
    columns: int

    @cached_property
    def images(self) -> UInt8[np.ndarray, "n h w 3"]:
        """Every picture, on white, in the order of `emoji`."""
        with (
            ZipFile(io.BytesIO(ARCHIVE.read_bytes())) as stored,
            Image.open(io.BytesIO(stored.read(f"{self.name}.webp"))) as sheet,
        ):
            pixels = np.asarray(sheet.convert("RGB"))
        cells = pixels.reshape(-1, self.size, self.columns, self.size, 3).transpose(0, 2, 1, 3, 4)
        return cells.reshape(-1, self.size, self.size, 3)[: len(self.emoji)]

    def pictures(self) -> Iterator[tuple[int, np.ndarray]]:
        """The number of each emoji with its picture."""
        return zip(self.emoji.tolist(), self.images, strict=True)


@dataclass(frozen=True)
class Archive:
    """Every emoji and every style."""

    emoji: tuple[Emoji, ...]
    styles: tuple[Style, ...]

    def style(self, name: str) -> Style:
        for each in self.styles:
            if each.name == name:
                return each
        raise unknown("style of emoji", name, [each.name for each in self.styles])


@cache
def archive() -> Archive:
    """The emoji as they ship; sheets are decoded when they are first asked for."""
    with ZipFile(io.BytesIO(ARCHIVE.read_bytes())) as stored:
        index = json.loads(stored.read("index.json"))
    emoji = [Emoji(**{**each, "keywords": tuple(each["keywords"])}) for each in index["emoji"]]
    told = ("name", "package", "version", "licence", "author", "url")
    styles = [
        Style(
            **{key: each[key] for key in told},
            emoji=np.array(each["emoji"], np.int64),
            size=index["size"],
            columns=index["columns"],
        )
        for each in index["styles"]
    ]
    return Archive(tuple(emoji), tuple(styles))
