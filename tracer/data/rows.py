"""Examples from the rows of a table: one image a row, or several rows with captions of the same image."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from tracer.core.errors import UserError
from tracer.data.assembly import assembled
from tracer.data.columns import Columns, columns, split_column
from tracer.data.encoded import Files
from tracer.data.examples import Examples
from tracer.data.options import SYNONYMS, Options, canonical, in_order
from tracer.data.table import Table, table
from tracer.data.values import text, texts


@dataclass
class Entry:
    """What the rows say of one image."""

    row: int
    key: str
    captions: dict[str, None] = field(default_factory=dict)  # as a set that keeps its order


def tabled(path: Path, options: Options) -> Examples:
    """The examples of the table in `path`; image paths are relative to it."""
    told = [name for name in (options.image, options.caption, options.label) if name is not None]
    found = table(path, options.separator, told)
    if not len(found):
        raise UserError(f"{path} has no rows below its header")
    used = columns(tuple(found.columns), options, path.name)
    rows, splits, note = _rows(found, options, path.name)
    entries = _entries(found, used, rows, path)
    _refuse_all_missing(path, entries)
    repeats = len(rows) - len(entries)
    return assembled(
        str(path),
        Files(path.parent, tuple(entries)),
        list(entries),
        keys=[entry.key for entry in entries.values()] if used.label else None,
        vocabulary=map(text, found.columns[used.label]) if used.label else None,
        naming=options.classes,
        captions=[tuple(entry.captions) for entry in entries.values()],
        splits=splits,
        detected=(
            *found.detected,
            *used.detected,
            note,
            f"repeated images: {repeats} rows merged into those before them" if repeats else "",
        ),
    )


def _rows(found: Table, options: Options, source: str) -> tuple[list[int], tuple[str, ...], str]:
    """The rows of the split that is meant, the splits there are, and what to say about it."""
    everything = list(range(len(found)))
    name = split_column(tuple(found.columns))
    values = [canonical(str(value)) for value in found.columns[name]] if name else []
    if not name or not set(values) <= set(SYNONYMS.values()):
        return everything, (), ""
    splits = in_order(set(values))
    chosen = options.choose(splits, source)
    note = f"split column: {name}, with {', '.join(splits)}; this is {chosen}"
    return [i for i in everything if values[i] == chosen], splits, note


def _entries(found: Table, used: Columns, rows: list[int], path: Path) -> dict[str, Entry]:
    """The images in order of first appearance, each with its label and all its captions."""
    entries: dict[str, Entry] = {}
    for row in rows:
        try:
            image = _image_path(found.columns[used.image][row])
            key = text(found.columns[used.label][row]) if used.label else ""
            captions = texts(found.columns[used.caption][row]) if used.caption else ()
        except UserError as error:
            raise UserError(f"{path}, row {row + 1}: {error}") from error
        entry = entries.setdefault(image, Entry(row, key))
        if entry.key != key:
            labels = f"{entry.key!r} and {key!r}"
            raise UserError(f"{path}: rows {entry.row + 1} and {row + 1} label {image} differently, {labels}")
        entry.captions.update(dict.fromkeys(captions))
    return entries


def _image_path(value: object) -> str:
    image = text(value).replace("\\", "/")  # as written on Windows
    if not image:
        raise UserError("the image path is empty")
    if "\0" in image:
        raise UserError("the image path holds a zero byte")
    if image.startswith(("http://", "https://")):
        raise UserError(f"{image} is an address: download the images first, then give their paths")
    return image


def _refuse_all_missing(path: Path, entries: dict[str, Entry], look: int = 20) -> None:
    """Refuse a table whose first images are all missing, early: its paths start from another folder."""
    first = list(islice(entries, look))
    if not any((path.parent / each).is_file() for each in first):
        raise UserError(f"{path}: no image {first[0]} in {path.parent}: paths are relative to the table")
