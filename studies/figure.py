"""Shared by the figures of all studies: a colour-blind safe palette (Okabe and Ito), and reproducible files.

matplotlib comes with the extra `dev` and is imported on the first call.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracer.core.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLACK, GREY = "#000000", "#7F7F7F"
ORANGE, SKY, GREEN, BLUE, RED, PURPLE = "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7"
FORMATS = ("svg", "png")


def blank(*, width: float, height: float) -> Figure:
    """An empty figure of this size in inches, with constrained layout."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise UserError("figures need matplotlib: pip install matplotlib") from missing
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, folder: Path, name: str, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write `name` in each format, atomically; the same figure gives the same bytes."""
    from matplotlib import rc_context

    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for suffix in formats:
        path = folder / f"{name}.{suffix}"
        unfinished = path.with_name(f".{path.name}.part")
        with rc_context({"svg.hashsalt": "tracer"}):
            metadata = {"Date": None} if suffix == "svg" else {"Software": None}
            figure.savefig(unfinished, format=suffix, dpi=150, metadata=metadata)
        unfinished.replace(path)
        files.append(path)
    return files
