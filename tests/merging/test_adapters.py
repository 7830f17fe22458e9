"""Merges of runs with an adapter are exported as an adapter."""

from __future__ import annotations

import json
from pathlib import Path

from merging.conftest import Finished

import tracer


def test_a_soup_has_the_ranks_of_its_runs_together(finished: Finished, tmp_path: Path) -> None:
    """The text tower is 8 wide: 3 and 3 are over half of it."""
    runs = [finished("flyp", adapter="lora:rank=3,factors=AB", lr=lr) for lr in (1e-2, 2e-2)]
    soup = tracer.merge(*runs, soup="uniform", device="cpu")
    folder = tracer.export(soup, tmp_path / "adapter", format="peft")
    assert json.loads((folder / "adapter_config.json").read_text())["r"] == 6
