"""The commands that messages advise."""

from __future__ import annotations

import shlex


def command_line(*words: object) -> str:
    """`tracer WORDS`, quoted so that it can be pasted into a shell whatever folders are called."""
    return shlex.join(["tracer", *map(str, words)])
