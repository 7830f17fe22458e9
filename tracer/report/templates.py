"""The Jinja templates of the page."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from tracer.report.label import cut

HERE = Path(__file__).parent


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
    environment.filters["cut"] = cut
    return environment
