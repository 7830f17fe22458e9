"""Values that come out of JSON or off a command line, held against an annotation."""

from __future__ import annotations

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin


def fits(value: object, hint: Any) -> bool:
    """Whether a value out of JSON is of the type that an annotation says."""
    kind, inside = get_origin(hint), get_args(hint)
    if kind in (UnionType, Union):
        return any(fits(value, each) for each in inside)
    if kind is Literal:
        return any(type(value) is type(each) and value == each for each in inside)
    if kind is tuple:
        return isinstance(value, list | tuple) and all(fits(each, inside[0]) for each in value)
    if kind is dict:
        return isinstance(value, dict)
    if hint in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, (int, float) if hint is float else hint)
