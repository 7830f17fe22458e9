"""A killed run ends bit-identical to one that was left in peace."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tracer.cli.app import main
from tracer.core.errors import UserError
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.runs.run import Run

TESTS = Path(__file__).parents[1]
QUICK = ["--data", "digits", "--model", "tiny-28", "--pretrained", "none", "--batch", "8", "--steps", "14"]
QUICK += ["--lr", "1e-3", "--device", "cpu"]


def drive(folder: Path, kills: int, *arguments: str) -> int:
    command = [sys.executable, str(TESTS / "killing.py"), str(folder), str(kills), "7", *arguments]
    command += [*QUICK, "--save-every", "2", "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return int(done.stdout.splitlines()[-1])


def log(folder: Path) -> dict[tuple[int, str], dict]:
    """The lines about the training by step and kind; each is there once."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    entries = [line for line in lines if line["kind"] in ("train", "held_out")]
    assert len({(line["step"], line["kind"]) for line in entries}) == len(entries), "a step is logged twice"
    return {(line["step"], line["kind"]): line for line in entries}


@pytest.mark.parametrize("method", ["tracer", "l2sp"])
def test_sigkill_at_any_moment_changes_no_bit(tmp_path: Path, method: str) -> None:
    peaceful, troubled = tmp_path / "peaceful", tmp_path / "troubled"
    assert drive(peaceful, 0, method) == 0
    killed = drive(troubled, 8, method)
    assert killed >= 3, "the run ended before it could be killed often enough to mean something"
    for file in sorted((peaceful / "weights").iterdir()):
        mine, theirs = load_file(file), load_file(troubled / "weights" / file.name)
        assert mine.keys() == theirs.keys()
        assert all(mine[name].equal(theirs[name]) for name in mine), f"{file.name} differs"
    assert json.loads((peaceful / "result.json").read_text()) == json.loads(
        (troubled / "result.json").read_text()
    )
    # All that is in both logs is equal; only evaluations may be missing, because they depend on time.
    mine, theirs = log(peaceful), log(troubled)
    assert all(mine[key] == theirs[key] for key in mine.keys() & theirs.keys())
    assert {kind for _, kind in mine.keys() ^ theirs.keys()} <= {"held_out"}
    assert not [file for file in troubled.rglob("*.tmp") if file.is_file() and file.parent.name == "weights"]


def test_sigterm_finishes_the_step_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "tracer", "train", *QUICK, "--steps", "100000", "--save-every", "100000"]
    process = subprocess.Popen(
        [*command, "--out", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not (out / "log.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, message = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, message
    assert f"tracer resume {out}" in message.replace("\n", "")
    assert len(list((out / "resume").glob("step-*/manifest.json"))) == 1


def test_a_full_disk_is_a_sentence_that_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, real, calls = tmp_path / "run", os.replace, iter(range(1, 1000))

    def full(source: str, target: str) -> None:
        if next(calls) > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        real(source, target)

    monkeypatch.setattr(os, "replace", full)
    assert main(["train", *QUICK, "--save-every", "2", "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert f"tracer resume {out}" in said.replace("\n", "")
    monkeypatch.undo()
    assert not list(out.rglob("*.tmp"))
    assert main(["resume", str(out), "--device", "cpu"]) == 0


def test_what_a_process_leaves_that_is_killed_while_it_begins_is_in_nobodys_way(tmp_path: Path) -> None:
    made = plan(Experiment(data="digits", method="ft", model="tiny-28", pretrained="none", steps=2))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".experiment.json.7.tmp").write_text('{"id":')
    assert Run.create(made, tmp_path / "run").description["id"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="is not empty and holds no run"):
        Run.create(made, tmp_path / "other")
