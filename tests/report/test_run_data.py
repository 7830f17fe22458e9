"""A run's folder is read as far as it goes, and every gap is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from written import write_run

from tracer.core.errors import UserError
from tracer.report.run_data import find_runs, read_run, read_runs
from tracer.runs.record import Recorder


def test_a_finished_run_has_nothing_to_note(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "a", steps=20))
    assert run.finished
    assert run.notes == ()
    assert (run.step, run.steps, run.title) == (20, 20, "TRACER")
    curve = run.curve("held_out", "accuracy")
    assert list(curve) == [2.0 * i for i in range(1, 11)]
    assert list(curve.values()) == sorted(curve.values())


def test_options_left_out_are_the_methods_defaults(tmp_path: Path) -> None:
    silent = read_run(write_run(tmp_path / "a"))
    spoken = read_run(write_run(tmp_path / "b", options={"beta": 0.5, "strength": 0.9}))
    assert silent.settled == spoken.settled
    assert silent.settled["beta"] == 0.5


def test_a_log_cut_short_is_read_up_to_the_cut(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", finished=False)
    log = folder / "log.jsonl"
    whole = log.read_text()
    log.write_text(whole + '{"step": 21, "kind": "tra')
    run = read_run(folder)
    assert run.step == 20
    assert run.notes[0] == "not finished: step 20 of 20"
    assert "1 of 21 lines of log.jsonl" in run.notes[1]


def test_a_line_separator_inside_a_text_ends_no_line(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    Recorder(folder / "log.jsonl").log(21, "note", text="one\u2028two\x85three")
    run = read_run(folder)
    assert run.notes == ()
    assert run.step == 21


def test_numbers_that_are_none_leave_gaps(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    lines = ['{"step": 1, "kind": "train", "loss": NaN}', '{"step": 2, "kind": "train", "loss": "high"}']
    lines += ['{"step": 3, "kind": "train", "loss": 1.5}', '{"step": true, "kind": "train", "loss": 9}']
    (folder / "log.jsonl").write_text("\n".join(lines))
    assert read_run(folder).curve("train", "loss") == {3.0: 1.5}


def test_a_missing_log_and_a_broken_result_are_told(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    (folder / "log.jsonl").unlink()
    (folder / "result.json").write_text('{"before": ')
    run = read_run(folder)
    assert not run.finished
    assert any("no log" in note for note in run.notes)
    assert any("result.json is not readable" in note for note in run.notes)


def test_an_unreadable_description_is_told_and_the_others_stay(tmp_path: Path) -> None:
    good, bad = write_run(tmp_path / "good"), write_run(tmp_path / "bad")
    (bad / "experiment.json").write_text("{")
    runs, unreadable = read_runs([good, bad])
    assert [run.name for run in runs] == ["good"]
    assert len(unreadable) == 1
    assert unreadable[0].startswith("bad: experiment.json")


def test_a_folder_of_runs_stands_for_its_runs_once(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "sweep" / "a"), write_run(tmp_path / "sweep" / "b")
    assert find_runs([tmp_path / "sweep", a]) == [a, b]


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no run at"):
        find_runs([tmp_path / "nowhere"])
    with pytest.raises(UserError, match="holds none"):
        find_runs([tmp_path])


def test_names_grow_until_they_differ(tmp_path: Path) -> None:
    folders = [
        write_run(tmp_path / "one" / "x"),
        write_run(tmp_path / "two" / "x"),
        write_run(tmp_path / "y"),
    ]
    assert [run.name for run in read_runs(folders)[0]] == ["one/x", "two/x", "y"]
