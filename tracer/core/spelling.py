"""Choices with options, spelt NAME, NAME:VALUE (of the first option) or NAME:OPTION=VALUE,OPTION=VALUE."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from tracer.core.errors import UserError, unknown
from tracer.core.validation import fits


def parse(kind: str, spelling: str, choices: Mapping[str, type[Any]]) -> Any:
    """The chosen dataclass with its options, whose annotations say what a value is.

    Raises UserError for an unknown name or option, an option given twice, or an invalid value.
    """
    if not isinstance(spelling, str):  # from Python
        name, option = next((name, fields(choice)[0]) for name, choice in choices.items())
        example = f"{name}:{option.name}={option.default}"
        raise UserError(f'{kind} {spelling!r:.60}: expected text such as "{example}"')
    name, _, assignments = spelling.partition(":")
    if name not in choices:
        raise unknown(kind, name, choices)
    known = [field.name for field in fields(choices[name])]
    hints = get_type_hints(choices[name])
    options: dict[str, Any] = {}
    for position, assignment in enumerate(assignments.split(",") if assignments else []):
        key, equals, text = assignment.partition("=")
        if not equals and position:
            raise UserError(
                f"{kind} {spelling}: {assignment!r} has no option; give OPTION=VALUE with {', '.join(known)}"
            )
        key, text = (key, text) if equals else (known[0], assignment)
        if key not in known:
            raise unknown(f"option of {kind} {name}", key, known)
        if key in options:
            raise UserError(f"{kind} {spelling}: {key} is given twice; give it once")
        options[key] = _value(f"{kind} {name}", key, text, hints[key])
    try:
        return choices[name](**options)
    except ValueError as error:
        raise UserError(f"{kind} {spelling}: {error}") from None


def _value(owner: str, option: str, text: str, hint: Any) -> float | bool | str:
    """The value that a text spells, of the annotated type. Raises UserError if it spells none."""
    if isinstance(hint, UnionType):  # with None, which is the default and has no spelling
        hint = get_args(hint)[0]
    if get_origin(hint) is Literal:
        if text not in get_args(hint):
            raise unknown(f"{option} of {owner}", text, get_args(hint))
        return text
    value, expected = {bool: _truth, int: _whole, float: _number}[hint](text)
    if not fits(value, hint):
        raise UserError(f"{owner}: {option} {text or repr(text)}: expected {expected}")
    return value


def _truth(text: str) -> tuple[bool | None, str]:
    return {"true": True, "false": False}.get(text.lower()), "true or false"


def _number(text: str) -> tuple[float | None, str]:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    return None if math.isnan(value) else value, "a number"


def _whole(text: str) -> tuple[int | None, str]:
    value = _number(text)[0]
    return int(value) if value is not None and value.is_integer() else None, "a whole number"
