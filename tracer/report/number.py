"""Numbers read from files, where they may be missing or invalid."""

from __future__ import annotations

import math
from typing import Any

from tracer.core.validation import fits


def number(value: Any) -> float | None:
    """The value as a float if it is a finite number, else None."""
    return float(value) if fits(value, float) and math.isfinite(value) else None


def count(value: Any) -> int | None:
    """The value if it is an integer, else None."""
    return value if fits(value, int) else None


def inner(value: Any, *names: str) -> Any:
    """The value under these names in nested objects; None where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
