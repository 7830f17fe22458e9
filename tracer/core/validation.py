"""Check values from JSON or the command line against type annotations."""

from __future__ import annotations

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from tracer.core.errors import UserError, unknown

KINDS = {int: "a whole number", float: "a number", bool: "True or False", str: "text", type(None): "None"}
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


def require(name: str, value: object, hint: Any) -> None:
    """Raise UserError, naming the argument, its value and what it may be, unless the value has the annotated type."""
    if fits(value, hint):
        return
    if get_origin(hint) is Literal:
        raise unknown(name, value, get_args(hint))
    large = isinstance(value, int) and abs(value) >= LARGEST
    raise UserError(f"{name} {value!r:.60}: expected {'a number below 2^64' if large else kind(hint)}")


def kind(hint: Any) -> str:
    """The values of an annotated type in words, such as "a whole number or None"."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (UnionType, Union):
        return " or ".join(map(kind, arguments))
    if origin in (tuple, list):
        return f"a list of {kind(arguments[0])}"
    return KINDS.get(hint, "a dict" if origin is dict else str(hint))
