"""Numbers read from files, where they may be missing or invalid."""

from __future__ import annotations

import math
from typing import Any


def number(value: Any) -> float | None:
    """The value as a float if it is a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def count(value: Any) -> int | None:
    """The value if it is an integer, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def inner(value: Any, *names: str) -> Any:
    """The value under these names in nested objects; None where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
