from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def picture(tmp_path) -> Callable[..., Path]:
    """Write a small image below `tmp_path`, as in `picture("cat/1.png")`; its pixels depend on its name."""

    def write(name: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(list(name.encode())).integers(0, 256, (9, 7, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
        return path

    return write
