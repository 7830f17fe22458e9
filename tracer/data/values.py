"""Cells of any table as text."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tracer.core.errors import UserError


def text(value: Any) -> str:
    """A cell as text; nothing, NaN and blanks are the empty text, whole floats lose their point."""
    if isinstance(value, str):
        return value.strip().encode(errors="replace").decode()  # half a character pair is no text
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int | float):
        return str(value)
    raise UserError(f"expected a text or a number, found {value!r:.60}")


def texts(value: Any) -> tuple[str, ...]:
    """The distinct texts of a cell that holds one or a list of them, without empty ones."""
    several: Iterable[Any] = value if isinstance(value, list | tuple) else [value]
    return tuple(dict.fromkeys(filter(None, map(text, several))))
