"""A killed run ends bit-identical to one that was left in peace."""

from __future__ import annotations

import errno
import json
import os
import random
import shlex
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from studies.faults.injection import kill_self, on_call
from studies.faults.process import run_command
from tracer.cli.app import main
from tracer.core.errors import UserError
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.runs.run import Run

METHODS = ("tracer --adapter prompts:image=2,text=2", "l2sp", "tracer --adapter lora:rank=2,factors=AB")
KILLS = 6


@pytest.fixture
def quick(some_digits: Path, minute_model: Path) -> list[str]:
    """A run of a few seconds."""
    data = ["--data", str(some_digits), "--model", str(minute_model), "--pretrained", "none"]
    return [*data, "--batch", "8", "--steps", "20", "--lr", "1e-3", "--device", "cpu", "--workers", "0"]


def killed(folder: Path, train: list[str]) -> int:
    """Train in forked processes until the run is done; returns how many of them were killed.

    They are killed in turn inside the n-th call that makes a write durable, so also between two files of a checkpoint,
    and at a random moment.
    """
    rng, kills = random.Random(7), 0
    while not (folder / "result.json").exists():
        begun = (folder / "experiment.json").exists()
        arguments = ["resume", str(folder)] if begun else [*train, "--out", str(folder)]
        how: dict[str, Any] = {}
        if kills < KILLS:
            number, moment = rng.randint(1, 8), rng.uniform(0.05, 0.4)
            in_write = {"inject": partial(on_call, number, kill_self, "fsync")}
            how = {"kill_after": moment} if kills % 2 else in_write
        ended = run_command([*arguments, "--save-every", "2"], **how)
        assert ended.killed or ended.code == 0, ended.tail
        kills += ended.killed
    return kills


def log(folder: Path) -> dict[tuple[int, str], dict]:
    """The lines about the training by step and kind; each is there once."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    entries = [line for line in lines if line["kind"] in ("train", "held_out")]
    assert len({(line["step"], line["kind"]) for line in entries}) == len(entries), "a step is logged twice"
    return {(line["step"], line["kind"]): line for line in entries}


@pytest.mark.parametrize("method", METHODS)
def test_sigkill_at_any_moment_changes_no_bit(tmp_path: Path, quick: list[str], method: str) -> None:
    train = ["train", *method.split(), *quick]
    peaceful, troubled = tmp_path / "peaceful", tmp_path / "troubled"
    assert main([*train, "--save-every", "2", "--out", str(peaceful)]) == 0
    assert killed(troubled, train) >= 3, "the run ended before it could be killed often enough"
    same_run(peaceful, troubled)


def same_run(peaceful: Path, troubled: Path) -> None:
    """Equal weights, results and log."""
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


def test_a_full_disk_is_a_sentence_that_says_how_to_go_on(
    tmp_path: Path, quick: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, real, calls = tmp_path / "run", os.replace, iter(range(1, 1000))

    def full(source: str, target: str) -> None:
        if next(calls) > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        real(source, target)

    monkeypatch.setattr(os, "replace", full)
    assert main(["train", *quick, "--save-every", "2", "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert f"tracer resume {shlex.quote(str(out))}" in said.replace("\n", "")
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
