"""The interface of a tool that shows curves of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

Line = dict[str, Any]  # a log line: {"step": …, "kind": …, …values}


class Sink(Protocol):
    """All methods are called from one thread. An exception is reported once and ends the sink, not the run."""

    def begin(self, last_step: int) -> None:
        """Start or resume: earlier processes logged up to step `last_step` (-1: none). Then `write` gets every line."""
        ...

    def write(self, line: Line) -> None:
        """Add one line."""
        ...

    def end(self) -> None:
        """Flush and close."""
        ...


def flat_settings(description: dict[str, Any]) -> dict[str, Any]:
    """The settings of the experiment and the options of its method, by name."""
    settings = dict(description["experiment"])
    return settings | settings.pop("options")


def scalars(line: Line) -> dict[str, float]:
    """The numbers of a line by the name of their curve: train/loss, held_out/accuracy."""
    values = {name: value for name, value in line.items() if name not in ("step", "kind")}
    return {f"{line['kind']}/{name}": number for name, number in _leaves(values, "")}


def _leaves(value: Any, path: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}/{name}" if path else str(name))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)
