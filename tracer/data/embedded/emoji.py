"""The emoji that ship with the package: 1 379 of them, each drawn by up to twelve artists, at 32 pixels.

One archive holds `index.json` (names, groups, keywords; the licence and source of every style) and a lossless
sheet of pictures for each style. Built by `studies/emojishift/build.py`; every style has its own licence (NOTICE).

A kind merges some of Unicode's 94 subgroups, so that it has at least nine emoji to learn and to test, and an everyday
name: `emoji_kinds.json`. Keycaps and the "other" objects and symbols belong to no kind.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import NamedTuple
from zipfile import ZipFile

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from tracer.core.errors import unknown

FOLDER = files("tracer.data.embedded")
ARCHIVE = FOLDER / "emoji.zip"
SUBGROUPS: dict[str, list[str]] = json.loads((FOLDER / "emoji_kinds.json").read_text(encoding="utf-8"))
KINDS = tuple(SUBGROUPS)
PROMPTS = ("{}", "a picture of {}", "an emoji of {}")
KIND_OF = {subgroup: kind for kind, subgroups in SUBGROUPS.items() for subgroup in subgroups}


class Emoji(NamedTuple):
    """Metadata of an emoji, the same for all styles."""

    hex: str  # code point
    name: str
    group: str
    subgroup: str
    keywords: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Style:
    """The pictures of one style."""

    name: str
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

    def pictures(self) -> dict[int, np.ndarray]:
        """The picture of each emoji, by its index."""
        return dict(zip(self.emoji.tolist(), self.images, strict=True))


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
    emoji = [Emoji(**(each | {"keywords": tuple(each["keywords"])})) for each in index["emoji"]]
    styles = [
        Style(each["name"], np.array(each["emoji"], np.int64), index["size"], index["columns"])
        for each in index["styles"]
    ]
    return Archive(tuple(emoji), tuple(styles))
