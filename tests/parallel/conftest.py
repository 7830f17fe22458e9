"""One pair of processes serves every test of this folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from pair import measure
from parallel_cases import CASES, STRUCTURES


@pytest.fixture(scope="session")
def found(common: Path, pytestconfig: pytest.Config) -> dict[str, Any]:
    """What `pair.py` found; test processes side by side share one run of it. `make test-slow` tries every case."""
    cases = [*CASES, "tracer-compiled"] if pytestconfig.option.markexpr == "slow" else STRUCTURES
    with FileLock(common / "pair.lock"):
        told = common / "pair" / "found.json"
        if not told.exists():
            told.parent.mkdir(exist_ok=True)
            for ended in measure(told.parent, cases):
                assert ended.code == 0, ended.output
    return json.loads(told.read_text())
