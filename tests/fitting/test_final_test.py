"""The test of a choice: each of its numbers is that of its own images."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tracer.fitting import final_test
from tracer.fitting.trial import AGREEMENT
from tracer.measure.answers import Key, Role
from tracer.merging.evaluator import Scores


def test_a_retained_set_may_be_called_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--retain test` is a folder of this name, whose answers are not those of the task."""
    monkeypatch.setattr(final_test.Test, "_by", lambda self, weights: weights)
    asked: tuple[tuple[str, Role], ...] = (("test", "task"), ("test", "retain"), (AGREEMENT, "names"))
    keys = {(name, role): Key(role, "", "", "", "", "") for name, role in asked}
    parts: Any = SimpleNamespace(test=range(4))
    run: Any = None
    test = final_test.Test(run, parts, tmp_path, keys)
    test._write("pretrained", Scores([True, False, False, False], {"test": [True] * 5}, 1.0))
    test._write("wise-0.5", Scores([True, True, True, False], {"test": [True, False] * 2 + [False]}, 0.5))
    hits = test._read("wise-0.5")
    assert hits is not None
    assert list(hits["task"]["test"]) == [True, True, True, False]
    assert list(hits["retain"]["test"]) == [True, False, True, False, False]
    assert test.read("wise-0.5") is not None
