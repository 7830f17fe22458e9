"""Read the images of the icon packages, each of which stores them in its own way, and rasterise them."""

from __future__ import annotations

import io
import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import resvg_py  # pyright: ignore[reportMissingImports]  (only the build needs it)
from PIL import Image, ImageOps

Emoji = dict[str, Any]
Draw = Callable[[Emoji, int], Image.Image | None]  # (emoji, side in pixels); None where the style lacks it
FRAME = {"left": 0, "top": 0, "width": 16, "height": 16}  # Iconify's defaults


def slug(text: str) -> str:
    """A name as icon sets write it: without accents, apostrophes and brackets, with hyphens between words."""
    plain = unicodedata.normalize("NFKD", re.sub(r"\(.*?\)|['’“”]", "", text.lower()))
    ascii_only = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return re.sub(r"[^a-z0-9]+", "-", ascii_only).strip("-")


def squashed(text: str) -> str:
    return slug(text).replace("-", "")


def iconify(place: Path, match: str) -> Draw:
    """Images of an Iconify set, found by code point or by the slug of the name, each used for one emoji."""
    icons, chars = (json.loads((place / f"{name}.json").read_text()) for name in ("icons", "chars"))
    known = icons["icons"].keys() | icons.get("aliases", {}).keys()
    spelling = {"slug": slug, "squash": squashed}.get(match)
    used: set[str] = set()

    def draw(emoji: Emoji, side: int) -> Image.Image | None:
        if spelling is None:
            name = chars.get(emoji["hex"])
        else:
            spelt = (spelling(emoji[key]) for key in ("name", "older"))
            name = next((each for each in spelt if each in known), None)
        if name is None or name in used:
            return None
        used.add(name)
        return drawn(_svg(icons, name, side), side)

    return draw


def _svg(icons: dict[str, Any], name: str, side: int) -> str:
    """An icon as a square SVG that keeps its proportions."""
    while name not in icons["icons"]:
        name = icons["aliases"][name]["parent"]
    icon = icons["icons"][name]
    left, top, width, height = (icon.get(k, icons.get(k, d)) for k, d in FRAME.items())
    link = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    frame = f'viewBox="{left} {top} {width} {height}" width="{side}" height="{side}"'
    return f"<svg {link} {frame}>{icon['body']}</svg>"


def vectors(place: Path) -> Draw:
    """Images in one SVG file each, named by code point."""

    def draw(emoji: Emoji, side: int) -> Image.Image | None:
        for name in (emoji["hex"].upper(), f"{emoji['hex'].upper()}-FE0F"):
            if (file := place / "black" / "svg" / f"{name}.svg").exists():
                return drawn(file.read_text(), side)
        return None

    return draw


def bitmaps(place: Path) -> Draw:
    """Images in one WebP file each, named by code point."""

    def draw(emoji: Emoji, side: int) -> Image.Image | None:
        for name in (emoji["hex"], f"{emoji['hex']}-fe0f"):
            if (file := place / "assets" / f"{name}.webp").exists():
                with Image.open(file) as image:
                    return ImageOps.pad(image.convert("RGBA"), (side, side), Image.Resampling.LANCZOS)
        return None

    return draw


def drawn(svg: str, side: int) -> Image.Image:
    png = resvg_py.svg_to_bytes(svg_string=svg, width=side, height=side, skip_system_fonts=True)
    return Image.open(io.BytesIO(bytes(png))).convert("RGBA")


def on_white(image: Image.Image, size: int) -> np.ndarray:
    white = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return np.asarray(white.resize((size, size), Image.Resampling.BOX))
