"""Examples from the rows of a table. Rows with the same image are merged: each may add a caption."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tracer.core.errors import UserError
from tracer.data.encoded import Files
from tracer.data.examples import Examples, Images, assemble
from tracer.data.formats.columns import each_cell, find_columns, row_splits
from tracer.data.formats.hub import encoded_images, read_parquet_file
from tracer.data.formats.table import parse_table
from tracer.data.formats.values import text
from tracer.data.options import Options, splits_by_name


def read_table(path: Path, options: Options) -> Examples:
    """Read the table in `path`; image paths are relative to its folder, images may be in the table itself (Parquet)."""
    source = str(path)
    requested = [name for name in (options.image, options.caption, options.label) if name is not None]
    table = parse_table(path, options.separator, requested)
    count = len(table)
    if not count:
        raise UserError(f"{path} has no rows below its header")
    columns = find_columns(tuple(table.columns), options, path.name, binary=table.binary)
    embedded = columns.image in table.binary
    splits = row_splits(table.columns, columns, source)
    keys = columns.keys(table.columns, source) or []
    captions: Sequence[Iterable[str]] = columns.captions(table.columns, source) or [()] * count
    if embedded:  # each row is an image
        ids, rows = [f"{row:07d}" for row in range(count)], list(range(count))
        images: Images = encoded_images(read_parquet_file(path), columns.image, source)
    else:
        paths = list(each_cell(_image_path, table.columns[columns.image], source))
        merged = _merged(path, paths, captions, {"label": keys, "split": splits.of_row})
        rows, captions = list(merged), list(merged.values())
        ids = [paths[row] for row in rows]
        images = Files(path.parent, tuple(ids))
    splits = splits._replace(of_row=[splits.of_row[row] for row in rows if splits.of_row])
    repeats = f"repeated images: {count - len(rows)} rows merged into those before them"
    examples = assemble(
        source,
        images,
        ids,
        keys=[keys[row] for row in rows] if columns.label else None,
        naming=options.classes,
        captions=[tuple(each) for each in captions],
        split=splits.choose(options, source),
        detected=(*table.detected, *columns.detected(), repeats if len(rows) < count else ""),
        warnings=() if embedded or splits.of_row else _split_folders(path, ids),
    )
    if not embedded and not any((path.parent / image).is_file() for image in examples.ids[:20]):
        first = examples.ids[0]
        raise UserError(f"{path}: no image {first} in {path.parent}: paths are relative to the table")
    return examples


def _merged(
    path: Path, images: list[str], captions: Sequence[Iterable[str]], others: Mapping[str, Sequence[str]]
) -> dict[int, dict[str, None]]:
    """The first row of each image, with the captions of all its rows; these must agree in other columns."""
    first: dict[str, int] = {}
    merged: dict[int, dict[str, None]] = {}
    for row, image in enumerate(images):
        own = first.setdefault(posixpath.normpath(posixpath.join(path.parent.as_posix(), image)), row)
        for what, cells in others.items():
            if cells and cells[own] != cells[row]:
                both = f"rows {own + 1} and {row + 1} give {image} a different {what}"
                raise UserError(f"{path}: {both}, {cells[own]!r} and {cells[row]!r}")
        merged.setdefault(own, {}).update(dict.fromkeys(captions[row]))
    return merged


def _split_folders(path: Path, images: Iterable[str]) -> Iterator[str]:
    """A warning if images of a table without splits lie in folders that are named after several."""
    splits = splits_by_name({part for image in images for part in image.split("/")[:-1]})
    if len(set(splits.values())) > 1 and "train" in splits.values():
        names = " and ".join(sorted(splits))
        advice = "a column split with train, val or test divides them"
        yield f"{path}: images lie in folders {names}, and all are used: {advice}"


def _image_path(value: object) -> str:
    image = text(value).replace("\\", "/")  # Windows separators
    if not image:
        raise UserError("the image path is empty")
    if "\0" in image:
        raise UserError("the image path holds a zero byte")
    if image.startswith(("http://", "https://")):
        raise UserError(f"{image} is an address: download the images first, then give their paths")
    return image
