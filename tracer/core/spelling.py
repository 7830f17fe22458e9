"""Choices with options, spelt NAME, NAME:VALUE (of the first option) or NAME:OPTION=VALUE,OPTION=VALUE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from tracer.core.errors import UserError, unknown


def parse(kind: str, spelling: str, choices: Mapping[str, type[Any]]) -> Any:
    """The chosen dataclass with its options. Raises UserError for an unknown name or option, or an invalid value."""
    name, _, assignments = spelling.partition(":")
    if name not in choices:
        raise unknown(kind, name, choices)
    known = [field.name for field in fields(choices[name])]
    options: dict[str, Any] = {}
    for assignment in assignments.split(",") if assignments else []:
        key, equals, value = assignment.partition("=")
        key, value = (key, value) if equals else (known[0], assignment)
        if key not in known:
            raise unknown(f"option of {kind} {name}", key, known)
        options[key] = _value(value)
    try:
        return choices[name](**options)
    except (TypeError, ValueError) as error:
        raise UserError(f"{kind} {spelling}: {error}") from None


def _value(text: str) -> float | bool | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return text
