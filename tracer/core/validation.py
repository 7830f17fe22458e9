"""Check values from JSON or the command line against type annotations."""

from __future__ import annotations

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin


def fits(value: object, hint: Any) -> bool:
    """Whether a value, as JSON represents it, has the annotated type. A bool is not a number; an int is a float."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (UnionType, Union):
        return any(fits(value, option) for option in arguments)
    if origin is Literal:
        return any(type(value) is type(option) and value == option for option in arguments)
    if origin is tuple:
        return isinstance(value, list | tuple) and all(fits(item, arguments[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict)
    if hint in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, (int, float) if hint is float else hint)
