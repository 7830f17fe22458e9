"""Examples from the rows of a table. Rows with the same image are merged: each may add a caption."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from tracer.core.errors import UserError
from tracer.data.assembly import assemble
from tracer.data.columns import Columns, find_columns, split_column
from tracer.data.encoded import Files
from tracer.data.examples import Examples
from tracer.data.options import SYNONYMS, Options, canonical, sort_splits
from tracer.data.table import Table, parse_table
from tracer.data.values import text, texts


@dataclass
class Entry:
    """One image, from all rows that name it."""

    row: int
    key: str
    captions: dict[str, None] = field(default_factory=dict)  # used as an ordered set


def read_table(path: Path, options: Options) -> Examples:
    """Read the table in `path`; image paths are relative to its folder."""
    requested = [name for name in (options.image, options.caption, options.label) if name is not None]
    table = parse_table(path, options.separator, requested)
    if not len(table):
        raise UserError(f"{path} has no rows below its header")
    columns = find_columns(tuple(table.columns), options, path.name)
    rows, splits, note = _rows(table, options, path.name)
    entries = _entries(table, columns, rows, path)
    _refuse_all_missing(path, entries)
    repeats = len(rows) - len(entries)
    return assemble(
        str(path),
        Files(path.parent, tuple(entries)),
        list(entries),
        keys=[entry.key for entry in entries.values()] if columns.label else None,
        vocabulary=map(text, table.columns[columns.label]) if columns.label else None,
        naming=options.classes,
        captions=[tuple(entry.captions) for entry in entries.values()],
        splits=splits,
        detected=(
            *table.detected,
            *columns.detected,
            note,
            f"repeated images: {repeats} rows merged into those before them" if repeats else "",
        ),
    )


def _rows(table: Table, options: Options, source: str) -> tuple[list[int], tuple[str, ...], str]:
    """The rows of the chosen split, the names of all splits, and a note for the report."""
    rows = list(range(len(table)))
    name = split_column(tuple(table.columns))
    values = [canonical(str(value)) for value in table.columns[name]] if name else []
    if not name or not set(values) <= set(SYNONYMS.values()):
        return rows, (), ""
    splits = sort_splits(set(values))
    chosen = options.choose(splits, source)
    note = f"split column: {name}, with {', '.join(splits)}; this is {chosen}"
    return [i for i in rows if values[i] == chosen], splits, note


def _entries(table: Table, columns: Columns, rows: list[int], path: Path) -> dict[str, Entry]:
    """The images in order of first appearance, each with its label and all its captions."""
    entries: dict[str, Entry] = {}
    for row in rows:
        try:
            image = _image_path(table.columns[columns.image][row])
            key = text(table.columns[columns.label][row]) if columns.label else ""
            captions = texts(table.columns[columns.caption][row]) if columns.caption else ()
        except UserError as error:
            raise UserError(f"{path}, row {row + 1}: {error}") from error
        entry = entries.setdefault(image, Entry(row, key))
        if entry.key != key:
            labels = f"{entry.key!r} and {key!r}"
            raise UserError(f"{path}: rows {entry.row + 1} and {row + 1} label {image} differently, {labels}")
        entry.captions.update(dict.fromkeys(captions))
    return entries


def _image_path(value: object) -> str:
    image = text(value).replace("\\", "/")  # Windows separators
    if not image:
        raise UserError("the image path is empty")
    if "\0" in image:
        raise UserError("the image path holds a zero byte")
    if image.startswith(("http://", "https://")):
        raise UserError(f"{image} is an address: download the images first, then give their paths")
    return image


def _refuse_all_missing(path: Path, entries: dict[str, Entry], count: int = 20) -> None:
    """Raise UserError if the first images are all missing: the paths are then relative to another folder."""
    first = list(islice(entries, count))
    if not any((path.parent / image).is_file() for image in first):
        raise UserError(f"{path}: no image {first[0]} in {path.parent}: paths are relative to the table")
