"""A folder of images: a subfolder for each class, or captions in text files beside the images."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tracer.core.errors import UserError
from tracer.data.assembly import assembled
from tracer.data.encoded import SUFFIXES, Files
from tracer.data.examples import Examples
from tracer.data.options import SYNONYMS, Options, canonical, in_order


def foldered(root: Path, options: Options) -> Examples:
    """The images below `root`, labelled by their first folder, captioned by `.txt` files beside them."""
    options.refuse("a folder of images", "image", "caption", "label", "separator")
    files = sorted(_files(root))
    images = [path for path in files if path[path.rfind(".") :].lower() in SUFFIXES]
    if not images:
        raise UserError(f"no images in {root}: looked for {', '.join(sorted(SUFFIXES))} at any depth")
    splits = _splits(images)
    paths, split_note = _of_split(images, splits, options, root)
    keys = {path: _key(path, splits) for path in paths}
    stray = [path for path in paths if not keys[path]]
    labelled = len(stray) < len(paths)
    inside = [path for path in paths if keys[path]] if labelled else paths
    captions = _captions(root, inside, files)
    left_out = f"outside the class folders: {len(stray)} images, left out" if labelled and stray else ""
    return assembled(
        str(root),
        Files(root, tuple(inside)),
        inside,
        keys=[keys[path] for path in inside] if labelled else None,
        vocabulary=(_key(path, splits) for path in images),
        naming=options.classes,
        captions=captions,
        splits=splits,
        detected=(split_note, "captions: text files beside the images" if any(captions) else "", left_out),
    )


def _files(root: Path) -> Iterator[str]:
    """The visible files below `root`, as relative paths; links are followed, but not in circles."""
    above: dict[str, frozenset[tuple[int, int]]] = {str(root): frozenset()}
    for folder, below, names in os.walk(root, followlinks=True):
        status = Path(folder).stat()
        here = (status.st_dev, status.st_ino)
        if here in above[folder]:
            below.clear()
            continue
        below[:] = [name for name in below if not name.startswith(".")]
        above |= {os.path.join(folder, name): above[folder] | {here} for name in below}  # noqa: PTH118
        way = "".join(f"{part}/" for part in Path(folder).relative_to(root).parts)
        yield from (way + name for name in names if not name.startswith("."))


def _of_split(
    images: list[str], splits: tuple[str, ...], options: Options, root: Path
) -> tuple[list[str], str]:
    """The images of the split that is meant, and what to say about it."""
    if not splits:
        return images, ""
    chosen = options.choose(splits, str(root))
    paths = [path for path in images if canonical(path.partition("/")[0]) == chosen]
    return paths, f"split folders: {', '.join(splits)}; this is {chosen}"


def _splits(paths: list[str]) -> tuple[str, ...]:
    """The splits, if that is what all the folders at the top are."""
    tops = {canonical(way) for way, slash, _ in (path.partition("/") for path in paths) if slash}
    return in_order(tops) if tops <= set(SYNONYMS.values()) else ()


def _key(path: str, splits: tuple[str, ...]) -> str:
    """The class folder of an image, after that of its split if there are any; empty if it lies in none."""
    *folders, _ = path.split("/")
    return next(iter(folders[1:] if splits else folders), "")


def _captions(root: Path, paths: list[str], files: list[str]) -> list[tuple[str, ...]]:
    """The lines of the text file beside each image."""
    texts = {path for path in files if path.endswith(".txt")}
    beside = (f"{path.rpartition('.')[0]}.txt" for path in paths)
    return [_lines(root / each) if each in texts else () for each in beside]


def _lines(path: Path) -> tuple[str, ...]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the caption file {path} cannot be read: {error}") from error
    return tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
