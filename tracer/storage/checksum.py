"""Hashes of values that JSON can hold, and JSON objects that carry a checksum of their own content."""

from __future__ import annotations

import hashlib
import json
from typing import Any

KEY = "digest"


def add_checksum(value: dict[str, Any]) -> dict[str, Any]:
    """A copy of the object with its checksum under "digest"."""
    # Hash what a reader will parse: JSON turns keys into strings, and numbers sort differently.
    return {**value, KEY: _blake2b(json.loads(json.dumps(value)))}


def verify_checksum(text: str, *, required: bool = False) -> dict[str, Any]:
    """Parse a JSON object and return it without its checksum; one that has none is accepted unless it is required.

    Raises ValueError if the text is not a JSON object or does not match its checksum.
    """
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError(f"nested too deeply: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("it does not hold an object")
    expected = value.pop(KEY, None)
    if (required or expected is not None) and expected != _blake2b(value):
        raise ValueError("it is damaged: its content does not match its digest")
    return value


def short_hash(value: object, size: int = 8) -> str:
    """A hash of a value that JSON can hold."""
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=size).hexdigest()


def _blake2b(value: dict[str, Any]) -> str:
    canonical = json.dumps(value, sort_keys=True)
    return hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()
