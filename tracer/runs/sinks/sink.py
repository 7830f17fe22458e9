"""What listens to a run: a place of somebody else's that shows curves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

Line = dict[str, Any]  # of a log: {"step": …, "kind": …, …values}


class Sink(Protocol):
    """All three are called from one thread; what they raise is reported once and ends the sink, not the run."""

    def begin(self, lines: Sequence[Line], told: int) -> None:
        """Take up a run whose log holds `lines`, where an earlier process has told all up to step `told`."""
        ...

    def tell(self, line: Line) -> None:
        """Show one more line."""
        ...

    def end(self) -> None:
        """Hand over whatever is left."""
        ...


def scalars(line: Line) -> dict[str, float]:
    """The numbers of a line under the names that curves have: train/loss, held_out/accuracy."""
    values = {name: value for name, value in line.items() if name not in ("step", "kind")}
    return {f"{line['kind']}/{name}": number for name, number in _leaves(values, "")}


def _leaves(value: Any, path: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}/{name}" if path else str(name))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)
