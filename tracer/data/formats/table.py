"""Read CSV, TSV, JSON, JSON lines and Parquet into columns of plain values."""

from __future__ import annotations

import codecs
import csv
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from tracer.core.errors import UserError
from tracer.data.formats.columns import count_known_names
from tracer.data.formats.hub import class_name
from tracer.data.formats.values import parse_json
from tracer.storage.images import SUFFIXES

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
BY_NAME = {name: mark for mark, name in SEPARATORS.items()} | {"\\t": "\t"}
MAX_COLUMNS = 10_000
MAX_ROWS_PER_BYTE = 10  # each row names or holds an image; a repeated value takes almost no room in Parquet
BINARY = ("binary", "large_binary")  # types of Parquet
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True)
class Table:
    """Columns of equal length by name, and what was detected while reading them."""

    columns: dict[str, list[Any]]
    detected: tuple[str, ...] = ()
    binary: tuple[str, ...] = ()  # columns that hold images themselves; their values are None here

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))


def parse_table(path: Path, separator: str | None = None, expected: Sequence[str] = ()) -> Table:
    """The table in `path`. `expected` are column names from the user, which help to detect the separator."""
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv", ".txt"):
        return _separated(path, separator, expected)
    if separator is not None:
        raise UserError(f"--separator means nothing for {path.name}: leave it out")
    return _parquet(path) if suffix == ".parquet" else _json(path)


def _separated(path: Path, separator: str | None, expected: Sequence[str]) -> Table:
    text, encoding = _text(path)
    if "\0" in text:
        raise UserError(f"{path} holds zero bytes: it is not a text table")
    mark = BY_NAME.get(separator, separator) if separator else _separator(text, expected)
    if len(mark) != 1 or mark in '"\r\n ':
        raise UserError(f"the separator {separator!r} must be one character, such as ',' or 'tab'")
    (_, header), *rows = _lines(text, mark, path)
    names = [name.strip() for name in header]
    _limit_columns(path, len(names))
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise UserError(f"{path} has more than one column {repeated[0]!r}")
    for number, row in rows:
        if len(row) != len(names):
            hint = f"text that holds {mark!r} must stand in double quotes"
            raise UserError(f"{path}, line {number}: {len(row)} fields under {len(names)} columns; {hint}")
    columns = {name: [row[i] for _, row in rows] for i, name in enumerate(names)}
    notes = [f"separator: {SEPARATORS.get(mark, repr(mark))}", f"encoding: {encoding}"]
    return Table(columns, tuple(notes[bool(separator) :]))


def _lines(text: str, mark: str, path: Path) -> list[tuple[int, list[str]]]:
    """The fields of each line, with its number. In TSV, quotes that do not match are taken literally."""
    physical = StringIO(text, newline="").readlines()
    reader = csv.reader(physical, delimiter=mark, strict=True)
    lines: list[tuple[int, list[str]]] = []
    try:
        start = 0
        for row in reader:
            _refuse_rows_in_quotes(physical[start + 1 : reader.line_num], len(row), mark)
            start = reader.line_num
            if row:
                lines.append((reader.line_num, row))
    except csv.Error as error:
        if mark != "\t":
            hint = "quotes inside quoted text must be doubled"
            raise UserError(f"{path}, line {reader.line_num}: {error}; {hint}") from error
        lines = [(i, line.split(mark)) for i, line in enumerate(text.splitlines(), 1) if line]
    if not lines:
        raise UserError(f"{path} is empty")
    return lines


def _refuse_rows_in_quotes(lines: list[str], columns: int, mark: str) -> None:
    """Raise csv.Error if one of these lines, which follow the first of a row, is a row itself and names an image.

    A quotation mark that opens a text, and is meant literally, takes in all rows up to the next one.
    """
    for line in lines:
        cells = line.rstrip("\r\n").split(mark)
        if len(cells) == columns and any(
            cell.strip('" ').lower().endswith(tuple(SUFFIXES)) for cell in cells
        ):
            raise csv.Error("a quoted text takes in whole rows before it")


def _limit_columns(path: Path, count: int) -> None:
    if count > MAX_COLUMNS:
        hint = "it must have a row for each image, below a header (--separator sets another separator)"
        raise UserError(f"{path} has {count} columns, more than {MAX_COLUMNS}: {hint}")


def _separator(text: str, expected: Sequence[str]) -> str:
    """The separator that splits the first line into the most known names; among equals, into the most columns."""
    line = next((line for line in text.splitlines() if line.strip()), "")

    def score(mark: str) -> tuple[int, int]:
        try:
            names = [name.strip() for name in next(csv.reader([line], delimiter=mark), [])]
        except csv.Error:
            return (0, 0)
        return (count_known_names(names) + sum(name in names for name in expected), len(names))

    return max(SEPARATORS, key=score)


def _text(path: Path) -> tuple[str, str]:
    """The text of a file and its encoding: from its byte-order mark, else UTF-8, else cp1252."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    encoding = next((name for mark, name in MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        return content.decode(encoding), encoding.removesuffix("-sig")
    except UnicodeDecodeError as error:
        if encoding != "utf-8":
            raise UserError(f"{path} is not the {encoding} text it starts as: {error}") from error
        try:
            return content.decode("cp1252"), "cp1252, because it is not UTF-8"
        except UnicodeDecodeError:  # two names could become one if its bytes were replaced
            raise UserError(f"{path} is neither UTF-8 nor cp1252 text: {error}") from error


def _json(path: Path) -> Table:
    """A list of records, or one record a line."""
    text, _ = _text(path)
    if path.suffix.lower() == ".json":
        records = parse_json(text, str(path))
        if not isinstance(records, list):
            raise UserError(f"{path} must hold a list of records, or be JSON lines with the ending .jsonl")
        places = {f"{path}, record {i}": record for i, record in enumerate(records, 1)}
    else:
        lines = {f"{path}, line {i}": line for i, line in enumerate(text.split("\n"), 1) if line.strip()}
        places = {where: parse_json(line, where) for where, line in lines.items()}
    for where, record in places.items():
        if not isinstance(record, dict):
            raise UserError(f'{where}: expected {{"image": …, "label": …}}, found {record!r:.60}')
    if not places:
        raise UserError(f"{path} is empty")
    names = dict.fromkeys(name for record in places.values() for name in record)
    _limit_columns(path, len(names))
    return Table({name: [record.get(name) for record in places.values()] for name in names})


def _parquet(path: Path) -> Table:
    """Images in the table may not fit into memory: they are read later, one at a time."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UserError("Parquet needs pyarrow: pip install 'tracer-clip[data]'") from error
    try:
        schema, rows = pq.read_schema(path), pq.read_metadata(path).num_rows
        if rows > MAX_ROWS_PER_BYTE * path.stat().st_size:
            raise UserError(
                f"{path} has {rows} rows in {path.stat().st_size} bytes, too few for as many images"
            )
        binary = tuple(field.name for field in schema if _holds_images(field.type))
        plain = [
            field.name for field in schema if field.name not in binary and not pa.types.is_struct(field.type)
        ]
        columns = pq.read_table(path, columns=plain).to_pydict()
    except (OSError, ValueError, pa.ArrowException) as error:  # ValueError: text that is not UTF-8
        raise UserError(f"{path} cannot be read as Parquet: {error}") from error
    if not columns and not binary:
        raise UserError(f"{path} has no columns of text or images: its columns are {', '.join(schema.names)}")
    for name, classes in _class_names(schema).items():
        if name in columns:
            columns[name] = [class_name(i, classes, f"{path}, {name}") for i in columns[name]]
    return Table(columns | {name: [None] * rows for name in binary}, binary=binary)


def _class_names(schema: Any) -> dict[str, list[str]]:
    """The distinct class names of columns of numbers, where the file was written by Hugging Face `datasets`."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        names = {name: kind["names"] for name, kind in features.items() if kind["_type"] == "ClassLabel"}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}
    return {  # the metadata of a file may hold anything
        name: own
        for name, own in names.items()
        if isinstance(own, list) and len({each for each in own if isinstance(each, str)}) == len(own)
    }


def _holds_images(kind: Any) -> bool:
    """Bytes, or a struct with a field of bytes, as Hugging Face stores images."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        kind = kind.field("bytes").type if kind.get_field_index("bytes") >= 0 else None
    return str(kind) in BINARY
