"""The figures, drawn once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock

from studies.theory.study import draw_figures


@pytest.fixture(scope="session")
def figures_folder(common: Path) -> Path:
    """A folder with every figure; test processes side by side share it."""
    folder = common / "theory" / "figures"
    with FileLock(common / "theory.lock"):
        if not folder.exists():
            draw_figures(folder)
    return folder
