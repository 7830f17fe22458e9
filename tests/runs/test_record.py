"""The log says what happened, once, however often the run was killed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracer.runs.record import Recorder, read


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path / "run" / "log.jsonl")


def steps(recorder: Recorder, kind: str | None = None) -> list[int]:
    return [line["step"] for line in read(recorder.path, kind)]


def test_lines_come_back_as_they_went(recorder: Recorder) -> None:
    recorder.log(1, "train", loss=0.1 + 0.2, note="Grüße")
    recorder.log(2, "held_out", accuracy=1.0)
    assert list(read(recorder.path)) == [
        {"step": 1, "kind": "train", "loss": 0.1 + 0.2, "note": "Grüße"},
        {"step": 2, "kind": "held_out", "accuracy": 1.0},
    ]
    assert steps(recorder, "held_out") == [2]
    assert steps(recorder, "nothing") == []


def test_each_line_is_json_at_once(recorder: Recorder) -> None:
    for step in range(3):
        recorder.log(step, "train", loss=1.0)
        assert len([json.loads(line) for line in recorder.path.read_text().splitlines()]) == step + 1


def test_rewinding_forgets_what_came_after(recorder: Recorder) -> None:
    for step in range(6):
        recorder.log(step, "train", loss=step / 3)
    before = recorder.path.read_text().splitlines()[:4]
    recorder.rewind(3)
    assert recorder.path.read_text().splitlines() == before  # to the byte: a float is not rounded on the way
    recorder.log(4, "train", loss=9.0)
    assert steps(recorder) == [0, 1, 2, 3, 4]
    recorder.rewind(-1)
    assert steps(recorder) == []


def test_damage_in_the_middle_is_counted_and_a_cut_end_is_not(recorder: Recorder) -> None:
    for step in range(4):
        recorder.log(step, "train", loss=1.0)
    lines = recorder.path.read_bytes().splitlines()
    recorder.path.write_bytes(
        b"\n".join([lines[0], b"\xff" + lines[1], lines[2][:-3], lines[3], lines[3][:9]])
    )
    assert recorder.rewind(9) == 2
    assert steps(recorder) == [0, 3]
    assert recorder.rewind(9) == 0


def test_rewinding_nothing_is_nothing(recorder: Recorder) -> None:
    recorder.rewind(5)
    assert not recorder.path.exists()


@pytest.mark.parametrize(
    "scrap", ['{"step": 3, "kin', '{"step": 3}garbage', "3", "[]", '{"kind": "train"}', "\0\0"]
)
def test_a_line_cut_by_a_crash_is_passed_over(recorder: Recorder, scrap: str) -> None:
    recorder.log(1, "train", loss=1.0)
    with recorder.path.open("a") as file:
        file.write(scrap)
    assert steps(recorder) == [1]
    recorder.rewind(2)  # as resuming does, so that the next line starts on its own
    recorder.log(2, "train", loss=2.0)
    assert steps(recorder) == [1, 2]
