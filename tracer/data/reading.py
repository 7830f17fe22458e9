"""How data are to be read: what a user says of columns and class names, the same for every command."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tracer.data.hub import PREFIX
from tracer.data.sources import TABLES


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What is left out is looked for in the data."""

    image_column: str | None = None
    """Column of a table that holds the image's path."""
    caption_column: str | None = None
    """Column that holds the caption, or none."""
    label_column: str | None = None
    """Column that holds the class, or none."""
    separator: str | None = None
    """Separator of a table, if it is not the one detected."""
    classes: str | None = None
    """File with the class names, one a line, where labels are not what a person would say."""

    @property
    def said(self) -> dict[str, str | None]:
        """All of it by name, and nothing that a class made from this one has besides."""
        return {field.name: getattr(self, field.name) for field in fields(Reading)}

    @property
    def keywords(self) -> dict[str, Any]:
        """The same in the words of `tracer.data.sources.load`."""
        return {name.removesuffix("_column"): value for name, value in self.said.items()}

    @property
    def flags(self) -> dict[str, str]:
        """What was said, in the words of the command line."""
        return {name.replace("_", "-"): value for name, value in self.said.items() if value is not None}

    def over(self, other: Reading, spec: str, others: str) -> Reading:
        """This for `spec`; what is left open as `other` has it for the data `others`, where both are of one kind."""
        if kind(spec) != kind(others):
            return self
        known = other.said | ({} if Path(spec).suffix == Path(others).suffix else {"separator": None})
        return Reading(**{name: value or known[name] for name, value in self.said.items()})


AS_FOUND = Reading()


def kind(spec: str) -> str:
    """What options data can take: a table's, those of the hub, or those of files with the same ending."""
    if spec.startswith((PREFIX, "digits", "emoji:")):
        return spec.partition(":")[0]
    suffix = Path(spec).suffix.lower()
    return "table" if suffix in TABLES else suffix
