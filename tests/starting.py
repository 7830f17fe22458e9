"""The environment of a Python that a test starts."""

from __future__ import annotations

import os
from pathlib import Path

LEAN = Path(__file__).parent / "lean"


def environment() -> dict[str, str]:
    """One thread, and an `import open_clip` that takes half the time."""
    path = os.pathsep.join(filter(None, [str(LEAN), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
