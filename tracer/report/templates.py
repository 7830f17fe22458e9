"""The Jinja templates of the report and of model cards."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from tracer.core.errors import printable

HERE = Path(__file__).parent
# Control characters as the signs that stand for them: a page and an SVG file must not hold them.
CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\r\t"} | {0x7F: 0x2421}
MAX_LENGTH = 30  # of a name beside a point; legend, table and tooltip show it in full


@cache
def environment() -> Any:
    """Templates escape what they are given, and fail at a name that is not given."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"cut": cut, "line": line, "code": code, "fenced": fenced}
    return environment


def cut(text: str, most: float = MAX_LENGTH) -> str:
    """The text, shortened to `most` letters."""
    return text if len(text) <= most else f"{text[: int(most) - 1]}…"


def line(text: str) -> str:
    """Text of a run on one line, with Markdown's and HTML's signs escaped."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", printable(" ".join(str(text).split())))


def code(text: object) -> str:
    """Text of a run as code in Markdown."""
    return f"`{printable(' '.join(str(text).split())).replace('`', '')}`"


def fenced(text: str) -> str:
    """A block of code that no line of the text can end."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}\n{printable(text)}\n{fence}"
