"""The environment of a Python that a test starts, and what of its output is a trace of ours."""

from __future__ import annotations

import os
from pathlib import Path

import tracer

LEAN = Path(__file__).parent / "lean"


def environment() -> dict[str, str]:
    """One thread, and an `import open_clip` that takes half the time."""
    path = os.pathsep.join(filter(None, [str(LEAN), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}


def own_frames(output: str) -> list[str]:
    """The lines of traces that lie in the package, wherever the clone and its environment are."""
    begin = f'File "{Path(tracer.__file__).parent}{os.sep}'
    return [line for line in output.splitlines() if begin in line]
