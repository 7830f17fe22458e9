"""Check values from JSON or the command line against type annotations."""

from __future__ import annotations

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

LARGEST = 2**64  # of an integer: larger ones fit no float, no tensor and no seed


def fits(value: object, hint: Any) -> bool:
    """Whether a value, as JSON represents it, has the annotated type. A bool is not a number; an int is a float.

    Of a TypedDict, required entries have to be there, all have to fit, and others may stand beside them.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if is_typeddict(hint):
        hints = get_type_hints(hint)
        if not isinstance(value, dict) or not hint.__required_keys__ <= value.keys():
            return False
        return all(fits(entry, hints[name]) for name, entry in value.items() if name in hints)
    if origin in (UnionType, Union):
        return any(fits(value, option) for option in arguments)
    if origin is Literal:
        return any(type(value) is type(option) and value == option for option in arguments)
    if origin in (tuple, list):
        if not isinstance(value, list | tuple):
            return False
        fixed = origin is tuple and arguments[-1] is not ...
        return all(fits(item, arguments[0]) for item in value) and not (
            fixed and len(value) != len(arguments)
        )
    if origin is dict:
        return isinstance(value, dict) and all(fits(item, arguments[1]) for item in value.values())
    if hint in (int, float) and (
        isinstance(value, bool) or (isinstance(value, int) and abs(value) >= LARGEST)
    ):
        return False
    return isinstance(value, (int, float) if hint is float else hint)
