"""The accelerate example stops and goes on exactly."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore")  # of accelerate, whose releases bring their own


def test_the_accelerate_example_resumes_exactly(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="pip install 'tracer-clip[hf]'")
    file = Path(__file__).parents[2] / "examples" / "accelerate_teacher.py"
    spec = importlib.util.spec_from_file_location("accelerate_teacher", file)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    whole = example.train(6, tmp_path / "whole").state_dict()
    example.train(6, tmp_path / "parts", stop_at=4)
    parts = example.train(6, tmp_path / "parts", resume=True).state_dict()
    assert parts["counters"] == whole["counters"] == {"step": 6, "steps": 6}
    assert all(torch.equal(parts["model"][name], whole["model"][name]) for name in whole["model"])
