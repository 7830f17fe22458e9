"""Parquet tables, with paths of images or with the images themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tracer.core.errors import UserError
from tracer.data.examples import Images, Subset
from tracer.data.formats.hub import class_name, encoded_images, read_parquet_file

MAX_ROWS_PER_BYTE = 10  # each row names or holds an image; a repeated value takes almost no room in Parquet


def read_columns(path: Path) -> tuple[dict[str, list[Any]], tuple[str, ...]]:
    """The columns of plain values, and the names of those that hold encoded images, whose values are None here.

    Images may not fit into memory: `read_images` reads them one at a time.
    """
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
            field.name
            for field in schema
            if field.name not in binary and not (pa.types.is_struct(field.type) or _is_binary(field.type))
        ]
        columns = pq.read_table(path, columns=plain).to_pydict()
    except (OSError, ValueError, pa.ArrowException) as error:  # ValueError: text that is not UTF-8
        raise UserError(f"{path} cannot be read as Parquet: {error}") from error
    if not columns and not binary:
        raise UserError(f"{path} has no columns of text or images: its columns are {', '.join(schema.names)}")
    for name, classes in _class_names(schema).items():
        if name in columns:
            columns[name] = [class_name(i, classes, f"{path}, {name}") for i in columns[name]]
    return columns | {name: [None] * rows for name in binary}, binary


def read_images(path: Path, column: str, rows: Sequence[int]) -> Images:
    """The encoded images in these rows of a column, read when asked for."""
    dataset = read_parquet_file(path)
    return Subset(encoded_images(dataset, column, str(path)), np.array(rows, np.int64))


def _class_names(schema: Any) -> dict[str, list[str]]:
    """The class names of columns of numbers, where the file was written by Hugging Face `datasets`."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        names = {name: kind["names"] for name, kind in features.items() if kind["_type"] == "ClassLabel"}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}
    return {name: classes for name, classes in names.items() if _are_names(classes)}


def _are_names(classes: object) -> bool:
    """Whether these are distinct texts; the metadata of a file may hold anything."""
    if not isinstance(classes, list) or not all(isinstance(each, str) for each in classes):
        return False
    return len(set(classes)) == len(classes)


def _holds_images(kind: Any) -> bool:
    """Bytes, or a struct with a field of bytes, as Hugging Face stores images."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return kind.get_field_index("bytes") >= 0 and _is_binary(kind.field("bytes").type)
    return _is_binary(kind)


def _is_binary(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
