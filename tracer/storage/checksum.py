"""A JSON object that notices when it is not what was written."""

from __future__ import annotations

import hashlib
import json
from typing import Any

KEY = "digest"


def add_checksum(value: dict[str, Any]) -> dict[str, Any]:
    """The object, and a hash of all that is in it, as JSON will give it back: there, names are text."""
    return {**value, KEY: _digest(json.loads(json.dumps(value)))}


def verify_checksum(text: str) -> dict[str, Any]:
    """The object in a text, without its hash; ValueError if it is none, or not the one that was written.

    One that was never add_checksum is taken as it is.
    """
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError(f"nested too deeply: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("it does not hold an object")
    expected = value.pop(KEY, None)
    if expected is not None and expected != _digest(value):
        raise ValueError("it is damaged: its content does not match its digest")
    return value


def _digest(value: dict[str, Any]) -> str:
    canonical = json.dumps(value, sort_keys=True)
    return hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()
