"""One start of two processes serves every test of this folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `pair.py` found; test processes side by side share one run of it."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own  # beside that lie older runs
    with FileLock(shared / "pair.lock"):
        told = shared / "pair" / "found.json"
        if not told.exists():
            told.parent.mkdir(exist_ok=True)
            command = [sys.executable, str(HERE / "pair.py"), str(told.parent)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
    return json.loads(told.read_text())
