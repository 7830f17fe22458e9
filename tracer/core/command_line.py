"""Commands that messages advise, and settings as arguments of a command."""

from __future__ import annotations

import shlex
from typing import Any


def command_line(*words: object) -> str:
    """`tracer WORDS`, quoted so that it can be pasted into a shell whatever folders are called."""
    plain = (str, int, float)  # anything else is a path
    return shlex.join(
        ["tracer", *(str(word) if isinstance(word, plain) else path_word(str(word)) for word in words)]
    )


def path_word(path: str) -> str:
    """A path as an argument: one that begins with a dash would be taken for a flag."""
    return f"./{path}" if path.startswith("-") else path


def flag(name: str, value: Any) -> list[str]:
    """A setting as arguments of the command line."""
    word = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [word if value else f"--no-{word[2:]}"]
    if isinstance(value, tuple):
        return [word, *(str(part) for part in value)]
    return [word, str(value)]
