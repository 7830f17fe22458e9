"""Examples from the rows of a table. Rows with the same image are merged: each may add a caption."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tracer.core.errors import UserError
from tracer.data.encoded import Files
from tracer.data.examples import Examples, Images, Subset, assemble
from tracer.data.formats.columns import Columns, find_columns, row_splits
from tracer.data.formats.hub import encoded_images, read_parquet_file
from tracer.data.formats.table import Table, parse_table
from tracer.data.formats.values import text, texts
from tracer.data.options import Options, splits_by_name


@dataclass
class Entry:
    """One image, from all rows that name it."""

    row: int
    image: str
    key: str
    split: str
    captions: dict[str, None] = field(default_factory=dict)  # used as an ordered set


def read_table(path: Path, options: Options) -> Examples:
    """Read the table in `path`; image paths are relative to its folder, images may be in the table itself (Parquet)."""
    requested = [name for name in (options.image, options.caption, options.label) if name is not None]
    table = parse_table(path, options.separator, requested)
    if not len(table):
        raise UserError(f"{path} has no rows below its header")
    columns = find_columns(tuple(table.columns), options, path.name, binary=table.binary)
    split = row_splits(table.columns, columns, str(path))
    splits, part = split.names, split.choose(options, path.name)
    embedded = columns.image in table.binary
    entries = _entries(table, columns, split.of_row, path)
    own = [entry for entry in entries if entry.split == part]
    if embedded:
        every = encoded_images(read_parquet_file(path), columns.image, str(path))
        images: Images = Subset(every, np.array([entry.row for entry in own], np.int64))
    else:
        images = Files(path.parent, tuple(entry.image for entry in own))
        if not any((path.parent / image).is_file() for image in images.paths[:20]):
            first = images.paths[0]
            raise UserError(f"{path}: no image {first} in {path.parent}: paths are relative to the table")
    repeats = (split.of_row.count(part) if splits else len(table)) - len(own)
    return assemble(
        str(path),
        images,
        [entry.image for entry in own],
        keys=[entry.key for entry in own] if columns.label else None,
        vocabulary=map(text, table.columns[columns.label]) if columns.label else None,
        naming=options.classes,
        captions=[tuple(entry.captions) for entry in own],
        splits=splits,
        detected=(
            *table.detected,
            *columns.detected,
            f"{split.note}; this is {part}" if splits else split.note,
            f"repeated images: {repeats} rows merged into those before them" if repeats else "",
        ),
        warnings=(split.warning, "" if splits or embedded else _split_folders(path, own)),
    )


def _entries(table: Table, columns: Columns, split_of: list[str], path: Path) -> list[Entry]:
    """The images in order of first appearance, each with its label and all its captions."""
    entries: dict[str, Entry] = {}
    for row in range(len(table)):
        try:
            # Images in the table itself have no path: each row is one.
            embedded = columns.image in table.binary
            image = f"{row:07d}" if embedded else _image_path(table.columns[columns.image][row])
            key = text(table.columns[columns.label][row]) if columns.label else ""
            captions = texts(table.columns[columns.caption][row]) if columns.caption else ()
        except UserError as error:
            raise UserError(f"{path}, row {row + 1}: {error}") from error
        split = split_of[row] if split_of else ""
        place = posixpath.normpath(posixpath.join(path.parent.as_posix(), image))
        entry = entries.setdefault(place, Entry(row, image, key, split))
        for what, one, other in (("label", entry.key, key), ("split", entry.split, split)):
            if one != other:
                both = f"rows {entry.row + 1} and {row + 1} give {image} a different {what}"
                raise UserError(f"{path}: {both}, {one!r} and {other!r}")
        entry.captions.update(dict.fromkeys(captions))
    return list(entries.values())


def _split_folders(path: Path, entries: list[Entry]) -> str:
    """A warning if images of a table without splits lie in folders that are named after several."""
    folders = {part for entry in entries for part in entry.image.split("/")[:-1]}
    splits = splits_by_name(folders)
    if len(set(splits.values())) < 2 or "train" not in splits.values():
        return ""
    names = " and ".join(sorted(splits))
    advice = "a column split with train, val or test divides them"
    return f"{path}: images lie in folders {names}, and all are used: {advice}"


def _image_path(value: object) -> str:
    image = text(value).replace("\\", "/")  # Windows separators
    if not image:
        raise UserError("the image path is empty")
    if "\0" in image:
        raise UserError("the image path holds a zero byte")
    if image.startswith(("http://", "https://")):
        raise UserError(f"{image} is an address: download the images first, then give their paths")
    return image
