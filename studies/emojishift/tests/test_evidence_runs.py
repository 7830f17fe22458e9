"""A very small study, run for real: it repeats to the bit, and finished runs are reused only if they are current."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from studies.emojishift.rows import Row
from studies.emojishift.runner import Workspace, run_studies
from studies.emojishift.study import MAIN, Study, Trial
from tracer.core.errors import UserError

TINY = Study(
    "main", MAIN[:2], trials=(Trial(0, 0),), rates=(1e-5, 1e-2), steps=2, pretraining=2, alphas=(0.5, 1.0)
)

pytestmark = pytest.mark.slow


def run(folder: Path, study: Study = TINY) -> list[Row]:
    *_, rows = run_studies([study], Workspace(folder), lambda message: None)
    return rows


def numbers(rows: list[Row]) -> list[tuple[object, ...]]:
    return [(row.study, row.arm, row.role, row.validation, row.gap, row.layers, row.scores) for row in rows]


def test_a_row_comes_out_bit_for_bit_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)  # models are named by relative path, so that ids agree
        rows.append(run(Path("runs")))
    assert [row.role for row in rows[0]] == ["start", "test", "test", "search", "search"]
    *_, tested, low, high = rows[0]
    assert tested.rate == max(low, high, key=lambda row: row.validation).rate
    assert (low.fold, low.scores) == (3, {})
    assert numbers(rows[0]) == numbers(rows[1])
    assert [row.run for row in rows[0]] == [row.run for row in rows[1]]

    finished = {file: file.stat().st_mtime_ns for file in Path("runs").rglob("result.json")}
    assert numbers(run(Path("runs"))) == numbers(rows[1])
    assert finished == {file: file.stat().st_mtime_ns for file in Path("runs").rglob("result.json")}

    finetuned = run(Path("runs"), replace(TINY, alphas=(0.25, 0.5, 1.0)))[2]
    before = rows[1][2]
    # A further mixture is scored, and nothing is trained.
    assert set(finetuned.scores) == {"0.25", "0.5", "1"}
    assert {alpha: finetuned.scores[alpha] for alpha in before.scores} == before.scores
    assert finetuned.cpu_seconds == before.cpu_seconds
    assert finished == {file: file.stat().st_mtime_ns for file in Path("runs").rglob("result.json")}


def test_a_model_of_another_pretraining_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(Path("runs"), replace(TINY, arms=MAIN[:1]))
    other = TINY.pretrainings()["strong-0-2"]
    monkeypatch.setattr(Study, "pretrainings", lambda self: {"strong-0-2": replace(other, lr=2e-3)})
    with pytest.raises(UserError, match="another experiment"):
        run(Path("runs"))
