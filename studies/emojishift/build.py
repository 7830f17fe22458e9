"""Build `tracer/data/embedded/emoji.zip` from twelve icon packages: `python -m studies.emojishift.build`.

It needs npm to download the packages that `sources.json` pins, and `pip install resvg-py==0.5.0` to rasterise them.
`--check` compares with the existing file instead of writing it; `--size` makes larger images.
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
TARGET = HERE.parents[1] / "tracer" / "data" / "embedded" / "emoji.zip"
SIZE = 32
FINER = 3  # images are rasterised three times as large and averaged, for smooth edges
COLUMNS = 38  # of the sheet that holds all images of a style
# The date of all files in the archive, so that the same build has the same bytes.
EPOCH = (1980, 1, 1, 0, 0, 0)

Package = dict[str, Any]
Pictures = dict[str, dict[int, np.ndarray]]  # by style and number of the emoji


def fetch(package: Package, folder: Path) -> Path:
    """The unpacked package, downloaded by npm if it is not there; its hash is checked."""
    name = f"{package['package'].lstrip('@').replace('/', '-')}-{package['version']}"
    archive, unpacked = folder / f"{name}.tgz", folder / name
    if not archive.exists():
        spec = f"{package['package']}@{package['version']}"
        command = ["npm", "pack", spec, "--silent", "--pack-destination", str(folder)]
        subprocess.run(command, check=True, capture_output=True)
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != package["integrity"]:
        raise SystemExit(f"{archive} is not the {package['package']} that sources.json pins")
    if not unpacked.exists():
        with tarfile.open(archive) as packed:
            packed.extractall(unpacked, filter="data")
    return unpacked / "package"


def vocabulary(words: dict[str, Path]) -> list[Emoji]:
    """Every emoji of one code point except flags, with name, group, subgroup and keywords, in Unicode's order."""
    named = _json(words["names"] / "data-by-emoji.json")
    keywords = _json(words["keywords"] / "dist" / "emoji-en-US.json")
    older = {each["unified"].removesuffix("-FE0F"): each for each in _json(words["subgroups"] / "emoji.json")}
    emoji = []
    for text, each in named.items():
        points = text.replace("\ufe0f", "")
        code = f"{ord(points[0]):04X}"
        if len(points) > 1 or each["group"] == "Flags" or code not in older:
            continue
        emoji.append(
            {
                "hex": code.lower(),
                "name": each["name"],
                "older": older[code]["name"].lower(),
                "group": each["group"],
                "subgroup": older[code]["subcategory"],
                "keywords": _words(keywords.get(text) or keywords.get(points, []), each["name"]),
            }
        )
    return emoji


def _words(keywords: list[str], name: str) -> list[str]:
    """Keywords that are words, without smileys, repetitions and the name itself."""
    cleaned = (" ".join(keyword.replace("_", " ").lower().split()) for keyword in keywords)
    words = (word for word in cleaned if re.fullmatch(r"[a-z][a-z0-9' -]*[a-z0-9]", word))
    return [word for word in dict.fromkeys(words) if word != name and slug(word) != slug(name)]


def pictures(emoji: list[Emoji], draw: Draw, size: int) -> Iterator[tuple[int, np.ndarray]]:
    """The number and image of each emoji that the style has; blank images (letters without a font) are left out."""
    for number, each in enumerate(emoji):
        image = draw(each, FINER * size)
        if image is not None and (picture := on_white(image, size)).min() < 255:
            yield number, picture


def distinct(styles: Pictures) -> Pictures:
    """The images that equal no earlier one of any emoji or style."""
    contents: set[bytes] = set()
    unique: Pictures = {}
    for style, images in styles.items():
        unique[style] = {}
        for number, picture in images.items():
            if (content := picture.tobytes()) not in contents:
                contents.add(content)
                unique[style][number] = picture
    return unique


def sheet(images: dict[int, np.ndarray], size: int) -> bytes:
    """All images of a style, row by row, as one lossless WebP."""
    rows = -(-len(images) // COLUMNS)
    cells = np.full((rows * COLUMNS, size, size, 3), 255, np.uint8)
    cells[: len(images)] = np.stack(list(images.values()))
    grid = cells.reshape(rows, COLUMNS, size, size, 3).transpose(0, 2, 1, 3, 4)
    file = io.BytesIO()
    image = Image.fromarray(grid.reshape(rows * size, COLUMNS * size, 3))
    image.save(file, "WEBP", lossless=True, quality=100, method=6, exact=True)
    return file.getvalue()


def write(target: Path, index: dict[str, Any], styles: Pictures) -> None:
    """Write the archive: `index.json`, and a sheet for each style."""
    with zipfile.ZipFile(target, "w") as archive:
        content = json.dumps(index, ensure_ascii=False, separators=(",", ":")).encode()
        archive.writestr(zipfile.ZipInfo("index.json", EPOCH), content, zipfile.ZIP_DEFLATED, 9)
        for style, images in styles.items():
            archive.writestr(zipfile.ZipInfo(f"{style}.webp", EPOCH), sheet(images, index["size"]))


def build(size: int, cache: Path) -> tuple[dict[str, Any], Pictures]:
    """The index, and every image by style and number of the emoji."""
    sources = _json(HERE / "sources.json")
    cache.mkdir(parents=True, exist_ok=True)
    emoji = vocabulary({each["name"]: fetch(each, cache) for each in sources["words"]})
    drawn: Pictures = {}
    for style in sources["styles"]:
        folder, match = fetch(style, cache), style["match"]
        own_files = bitmaps if style["name"] == "fluent-3d" else vectors
        draw = own_files(folder) if match == "file" else iconify(folder, match)
        drawn[style["name"]] = dict(pictures(emoji, draw, size))
        print(f"{style['name']:22} {len(drawn[style['name']]):5}")
    unique = distinct(drawn)
    styles = [{**style, "emoji": list(unique[style["name"]])} for style in sources["styles"]]
    described = [{key: value for key, value in each.items() if key != "older"} for each in emoji]
    return {"size": size, "columns": COLUMNS, "emoji": described, "styles": styles}, unique


def check(index: dict[str, Any], styles: Pictures) -> None:
    """Print how many images of the existing file the build reproduces."""
    from tracer.data.embedded.emoji import archive

    stored = archive()
    there = {
        (each.name, stored.emoji[e].hex): p for each in stored.styles for e, p in each.pictures().items()
    }
    built = {
        (style, index["emoji"][e]["hex"]): p for style, images in styles.items() for e, p in images.items()
    }
    same = sum(key in built and np.array_equal(built[key], picture) for key, picture in there.items())
    print(f"{same} of {len(there)} pictures are equal; {len(built.keys() - there.keys())} are new")


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--cache", type=Path, default=Path("build/emoji"))
    parser.add_argument("--out", type=Path, default=TARGET)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.size != SIZE and options.out == TARGET and not options.check:
        parser.error(f"the images of the package have {SIZE} pixels: --size {options.size} needs --out FILE")
    result = build(options.size, options.cache)
    if options.check:
        check(*result)
    else:
        write(options.out, *result)
        print(f"{options.out.name}: {options.out.stat().st_size:,} bytes")
