"""Settings as arguments of the command line, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def flag(name: str, value: Any) -> list[str]:
    """A setting as arguments of the command line."""
    word = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [word if value else f"--no-{word[2:]}"]
    if isinstance(value, tuple):
        return [word, *(str(part) for part in value)]
    return [word, str(value)]


def flag_values(arguments: Sequence[str]) -> dict[str, list[str]]:
    """The values of each flag, by the name of the setting."""
    values: dict[str, list[str]] = {}
    for argument in arguments:
        if argument.startswith("--"):
            values[argument[2:].replace("-", "_")] = []
        elif values:
            values[[*values][-1]].append(argument)
    return values
