"""The command-line options for reading data, shared by all commands."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tracer.data.formats.hub import PREFIX
from tracer.data.sources import TABLES, embedded_name


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Options that are not set are detected from the data."""

    image_column: str | None = None
    """Column of a table that holds the image's path."""
    caption_column: str | None = None
    """Column that holds the caption, or none."""
    label_column: str | None = None
    """Column that holds the class, or none."""
    separator: str | None = None
    """Separator of a table, if it is not the one detected."""
    classes: str | None = None
    """File with the class names, one a line, if the labels in the data are numbers or codes."""

    @property
    def _options(self) -> dict[str, str | None]:
        """The fields of this class by name, without those of a subclass."""
        return {field.name: getattr(self, field.name) for field in fields(Reading)}

    @property
    def keywords(self) -> dict[str, Any]:
        """The options as keyword arguments of `tracer.data.sources.load`."""
        return {name.removesuffix("_column"): value for name, value in self._options.items()}

    @property
    def flags(self) -> dict[str, str]:
        """The options that are set, as command-line flags without dashes."""
        return {name.replace("_", "-"): value for name, value in self._options.items() if value is not None}

    def over(self, other: Reading, spec: str, others: str) -> Reading:
        """These options for `spec`, completed by those of `other` for the data `others` if both are of one kind."""
        if kind(spec) != kind(others):
            return self
        defaults = other._options | ({} if Path(spec).suffix == Path(others).suffix else {"separator": None})
        return Reading(**{name: value or defaults[name] for name, value in self._options.items()})


AS_FOUND = Reading()


def kind(spec: str) -> str:
    """The kind of a source: sources of one kind take the same options."""
    embedded = embedded_name(spec)
    if embedded is not None or spec.startswith(PREFIX):
        return (embedded or spec).partition(":")[0]
    suffix = Path(spec).suffix.lower()
    return "table" if suffix in TABLES else suffix
