# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy", "pillow", "resvg-py==0.5.0"]
# ///
"""Build `tracer/data/emoji.zip` out of twelve icon packages: `python studies/emojishift/build.py`.

It needs npm, which fetches the packages that `sources.json` pins, and `pip install resvg-py==0.5.0`, which draws
them. `--check` compares with the file that is there, instead of writing it; `--size` draws larger pictures.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from studies.emojishift.drawings import Draw, Emoji, bitmaps, iconify, on_white, slug, vectors

HERE = Path(__file__).parent
TARGET = HERE.parents[1] / "tracer" / "data" / "emoji.zip"
SIZE = 32
FINER = 3  # pictures are drawn three times as large and then averaged, which is what makes edges soft
COLUMNS = 38  # of a sheet that holds all pictures of a style
# The date of everything in the archive, so that the same build has the same bytes.
EPOCH = (1980, 1, 1, 0, 0, 0)

Package = dict[str, Any]
Pictures = dict[str, dict[int, np.ndarray]]  # by style and number of the emoji


def fetch(package: Package, folder: Path) -> Path:
    """The unpacked package, fetched by npm unless it is there already, after its hash has been compared."""
    name = f"{package['package'].lstrip('@').replace('/', '-')}-{package['version']}"
    archive, place = folder / f"{name}.tgz", folder / name
    if not archive.exists():
        wanted = f"{package['package']}@{package['version']}"
        command = ["npm", "pack", wanted, "--silent", "--pack-destination", str(folder)]
        subprocess.run(command, check=True, capture_output=True)
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != package["integrity"]:
        raise SystemExit(f"{archive} is not the {package['package']} that sources.json pins")
    if not place.exists():
        with tarfile.open(archive) as packed:
            packed.extractall(place, filter="data")
    return place / "package"


def vocabulary(words: dict[str, Path]) -> list[Emoji]:
    """Every emoji of one code point that is no flag, with name, group, subgroup and keywords, in Unicode's order."""
    named = _json(words["names"] / "data-by-emoji.json")
    keywords = _json(words["keywords"] / "dist" / "emoji-en-US.json")
    older = {each["unified"].removesuffix("-FE0F"): each for each in _json(words["subgroups"] / "emoji.json")}
    found = []
    for text, each in named.items():
        points = text.replace("\ufe0f", "")
        code = f"{ord(points[0]):04X}"
        if len(points) > 1 or each["group"] == "Flags" or code not in older:
            continue
        found.append(
            {
                "hex": code.lower(),
                "name": each["name"],
                "older": older[code]["name"].lower(),
                "group": each["group"],
                "subgroup": older[code]["subcategory"],
                "keywords": _spoken(keywords.get(text) or keywords.get(points, []), each["name"]),
            }
        )
    return found


def _spoken(keywords: list[str], name: str) -> list[str]:
    """Keywords that are words: no smileys, not the name again, each once."""
    said = (" ".join(keyword.replace("_", " ").lower().split()) for keyword in keywords)
    words = (word for word in said if re.fullmatch(r"[a-z][a-z0-9' -]*[a-z0-9]", word))
    return [word for word in dict.fromkeys(words) if word != name and slug(word) != slug(name)]


def pictures(emoji: list[Emoji], draw: Draw, size: int) -> Iterator[tuple[int, np.ndarray]]:
    """The number of each emoji that the style has, and its picture, unless that is blank (letters without a font)."""
    for number, each in enumerate(emoji):
        image = draw(each, FINER * size)
        if image is not None and (picture := on_white(image, size)).min() < 255:
            yield number, picture


def distinct(styles: Pictures) -> Pictures:
    """Pictures that no earlier one equals, whichever emoji or style that belongs to."""
    seen: set[bytes] = set()
    kept: Pictures = {}
    for style, found in styles.items():
        kept[style] = {}
        for number, picture in found.items():
            if (content := picture.tobytes()) not in seen:
                seen.add(content)
                kept[style][number] = picture
    return kept


def sheet(found: dict[int, np.ndarray], size: int) -> bytes:
    """All pictures of a style, row by row, as one lossless image."""
    rows = -(-len(found) // COLUMNS)
    cells = np.full((rows * COLUMNS, size, size, 3), 255, np.uint8)
    cells[: len(found)] = np.stack(list(found.values()))
    grid = cells.reshape(rows, COLUMNS, size, size, 3).transpose(0, 2, 1, 3, 4)
    written = io.BytesIO()
    image = Image.fromarray(grid.reshape(rows * size, COLUMNS * size, 3))
    image.save(written, "WEBP", lossless=True, quality=100, method=6, exact=True)
    return written.getvalue()


def write(target: Path, index: dict[str, Any], styles: Pictures) -> None:
    """One archive: `index.json`, and a sheet for each style."""
    with zipfile.ZipFile(target, "w") as archive:
        content = json.dumps(index, ensure_ascii=False, separators=(",", ":")).encode()
        archive.writestr(zipfile.ZipInfo("index.json", EPOCH), content, zipfile.ZIP_DEFLATED, 9)
        for style, found in styles.items():
            archive.writestr(zipfile.ZipInfo(f"{style}.webp", EPOCH), sheet(found, index["size"]))


def build(size: int, cache: Path) -> tuple[dict[str, Any], Pictures]:
    """The index of everything, and every picture by style and number of the emoji."""
    sources = _json(HERE / "sources.json")
    cache.mkdir(parents=True, exist_ok=True)
    emoji = vocabulary({each["name"]: fetch(each, cache) for each in sources["words"]})
    found = {}
    for style in sources["styles"]:
        place, match = fetch(style, cache), style["match"]
        own_files = bitmaps if style["name"] == "fluent-3d" else vectors
        draw = own_files(place) if match == "file" else iconify(place, match)
        found[style["name"]] = dict(pictures(emoji, draw, size))
        print(f"{style['name']:22} {len(found[style['name']]):5}")
    kept = distinct(found)
    styles = [{**style, "emoji": list(kept[style["name"]])} for style in sources["styles"]]
    said = [{key: value for key, value in each.items() if key != "older"} for each in emoji]
    return {"size": size, "columns": COLUMNS, "emoji": said, "styles": styles}, kept


def check(index: dict[str, Any], styles: Pictures) -> None:
    """Say how much of the file that is there comes out again."""
    from tracer.data.emoji import archive

    stored = archive()
    there = {(each.name, stored.emoji[e].hex): p for each in stored.styles for e, p in each.pictures()}
    made = {(style, index["emoji"][e]["hex"]): p for style, found in styles.items() for e, p in found.items()}
    same = sum(key in made and np.array_equal(made[key], picture) for key, picture in there.items())
    print(f"{same} of {len(there)} pictures are equal; {len(made.keys() - there.keys())} are new")


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--cache", type=Path, default=Path("build/emoji"))
    parser.add_argument("--out", type=Path, default=TARGET)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    if asked.size != SIZE and asked.out == TARGET and not asked.check:
        parser.error(f"the package's own pictures have {SIZE} pixels: --size {asked.size} needs --out FILE")
    result = build(asked.size, asked.cache)
    if asked.check:
        check(*result)
    else:
        write(asked.out, *result)
        print(f"{asked.out.name}: {asked.out.stat().st_size:,} bytes")
