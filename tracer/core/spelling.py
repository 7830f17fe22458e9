"""Choices with options, spelt NAME, NAME:VALUE (of the first option) or NAME:OPTION=VALUE,OPTION=VALUE."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from types import UnionType
from typing import Any, get_args, get_type_hints

from tracer.core.errors import UserError, unknown
from tracer.core.validation import require


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
        options[key] = _value(f"{key} of {kind} {name}", text, hints[key])
    try:
        return choices[name](**options)
    except ValueError as error:
        raise UserError(f"{kind} {spelling}: {error}") from None


def _value(name: str, text: str, hint: Any) -> Any:
    """The value that a text spells, of the annotated type. Raises UserError, naming the option, if it spells none."""
    if isinstance(hint, UnionType):  # with None, which is the default and has no spelling
        hint = get_args(hint)[0]
    value: Any = text
    if hint is bool:
        value = {"true": True, "false": False}.get(text.lower(), text)
    elif hint in (int, float):
        with suppress(ValueError):
            number = float(text)
            if not math.isnan(number):
                value = int(number) if hint is int and number.is_integer() else number
    require(name, value, hint)
    return value
