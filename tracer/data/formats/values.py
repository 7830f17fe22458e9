"""Cells of tables as text."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from tracer.core.errors import UserError

# How programs write a cell that is empty.
MISSING = frozenset(("nan", "none", "null", "nil", "na", "n/a", "#n/a", "<na>", "nat"))


def says_missing(value: str) -> bool:
    """Whether a text is what a program writes for an empty cell."""
    return value.casefold() in MISSING


def distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs, for `json.loads`, which would keep the last of two values without a word."""
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r:.60} is there twice")
    return record


def parse_json(content: str | bytes, where: str) -> Any:
    """What a JSON text holds; `where` it stands is for errors."""
    try:
        return json.loads(content, object_pairs_hook=distinct_keys)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON: {error}") from error


def text(value: Any) -> str:
    """A cell as text: None, NaN and blanks become the empty string, 3.0 becomes "3"."""
    if isinstance(value, str):
        return value.strip().encode(errors="backslashreplace").decode()  # lone surrogates, each its own
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int | float):
        return str(value)
    raise UserError(f"expected a text or a number, found {value!r:.60}")


def texts(value: Any) -> tuple[str, ...]:
    """The distinct, non-empty texts of a cell that holds one text or a list."""
    cells: Iterable[Any] = value if isinstance(value, list | tuple) else [value]
    return tuple(dict.fromkeys(filter(None, map(text, cells))))
