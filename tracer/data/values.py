"""Convert table cells to text."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tracer.core.errors import UserError


def text(value: Any) -> str:
    """A cell as text: None, NaN and blanks become the empty string, 3.0 becomes "3"."""
    if isinstance(value, str):
        return value.strip().encode(errors="replace").decode()  # replaces lone surrogates
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
