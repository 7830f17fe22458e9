"""One start of two processes serves every test of this folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from parallel_cases import CASES, STRUCTURES

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def found(common: Path, pytestconfig: pytest.Config) -> dict[str, Any]:
    """What `pair.py` found; test processes side by side share one run of it. `make test-slow` tries every case."""
    cases = [*CASES, "tracer-compiled"] if pytestconfig.option.markexpr == "evidence" else STRUCTURES
    with FileLock(common / "pair.lock"):
        told = common / "pair" / "found.json"
        if not told.exists():
            told.parent.mkdir(exist_ok=True)
            command = [sys.executable, str(HERE / "pair.py"), str(told.parent), *cases]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
    return json.loads(told.read_text())
