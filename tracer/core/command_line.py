"""The commands that messages advise."""

from __future__ import annotations

import shlex


def command_line(*words: object) -> str:
    """`tracer WORDS`, quoted so that it can be pasted into a shell whatever folders are called."""
    plain = (str, int, float)  # anything else is a path
    return shlex.join(
        ["tracer", *(str(word) if isinstance(word, plain) else path_word(str(word)) for word in words)]
    )


def path_word(path: str) -> str:
    """A path as an argument: one that begins with a dash would be taken for a flag."""
    return f"./{path}" if path.startswith("-") else path
