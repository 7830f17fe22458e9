"""A finished run is a model: for `train`, `eval`, `load` and `finetune`; and a name that leads nowhere says so."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import torch

import tracer
from tracer.cli.app import main
from tracer.runs.run import Run

SHORT = ["--steps", "2", "--batch", "8", "--device", "cpu", "--workers", "0"]


@pytest.fixture(scope="module")
def short(some_digits: Path) -> list[str]:
    """Flags of a short run."""
    return ["--data", str(some_digits), *SHORT]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, short: list[str], minute: str) -> Path:
    out = tmp_path_factory.mktemp("home") / "runs" / "base"
    assert main(["train", "flyp", *short, "--model", minute, "--pretrained", "none", "--out", str(out)]) == 0
    return out


def test_training_starts_from_the_weights_of_a_run(base: Path, short: list[str], tmp_path: Path) -> None:
    out = tmp_path / "second"
    assert main(["train", "zeroshot", *short, "--model", str(base), "--out", str(out)]) == 0
    first, second = Run.open(base).student().state_dict(), Run.open(out).student("pretrained").state_dict()
    assert all(torch.equal(first[name], second[name]) for name in second)
    start = Run.open(base).student("pretrained").state_dict()
    assert any(not torch.equal(start[name], second[name]) for name in second), (
        "the run's start, not its result"
    )


def test_the_same_weights_are_the_same_model_wherever_the_run_lies(
    base: Path, short: list[str], some_digits: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(base, tmp_path / "moved")
    names = []
    for number, model in enumerate((base, copy)):
        out = tmp_path / f"run-{number}"
        assert main(["train", "zeroshot", *short, "--model", str(model), "--out", str(out)]) == 0
        names.append(Run.open(out).experiment.model)
    assert names[0] == names[1]
    assert tracer.finetune(
        str(some_digits),
        model=str(base),
        method="zeroshot",
        steps=2,
        batch=8,
        device="cpu",
        out=tmp_path / "run-0",
    ).finished


def test_a_dry_run_leaves_nothing(
    base: Path,
    short: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", *short, "--model", str(base), "--dry-run"]) == 0
    shown = re.sub(r"[\s│]", "", capsys.readouterr().out)
    assert re.sub(r"\s", "", str(base)) in shown, "a long path is wrapped, not cut"
    assert not list(tmp_path.iterdir())


def test_a_run_is_evaluated_and_loaded(base: Path, some_digits: Path) -> None:
    assert main(["eval", str(base), "--data", str(some_digits), "--device", "cpu"]) == 0
    loaded = tracer.load(base).student.state_dict()
    assert all(
        torch.equal(value, loaded[name]) for name, value in Run.open(base).student().state_dict().items()
    )


def test_an_unfinished_run_is_refused(
    base: Path, short: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    half = shutil.copytree(base, tmp_path / "half")
    (half / "result.json").unlink()
    assert main(["train", *short, "--model", str(half), "--out", str(tmp_path / "run")]) == 2
    assert "tracer resume" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("flags", [[], ["--dry-run"]])
def test_a_run_with_learned_tokens_is_refused(
    flags: list[str], short: list[str], minute: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = ["--model", minute, "--pretrained", "none", "--adapter", "prompts", "--lr", "1e-3"]
    assert main(["train", "flyp", *short, *start, "--out", str(tmp_path / "first")]) == 0
    assert (
        main(["train", *short, "--model", str(tmp_path / "first"), "--out", str(tmp_path / "run"), *flags])
        == 2
    )
    message = " ".join(capsys.readouterr().err.split())
    assert f"the run {tmp_path / 'first'} cannot be the start of another" in message
    assert "--format" not in message
    assert {each.name for each in tmp_path.iterdir()} == {"first"}


@pytest.mark.parametrize("command", [["eval"], ["train", "--data", "digits", *SHORT, "--model"]])
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("runs/bas", "there is no run or model at runs/bas; in runs: did you mean base?"),
        ("runs/nope", "there is no run or model at runs/nope; in runs: choose from: base"),
        ("runs/model", "there is no run or model at runs/model; in runs: choose from: base"),  # not models
        ("rusn/base", "there is no run or model at rusn/base: unknown folder 'rusn': did you mean runs?"),
        ("ViT-B/61", "no model of this name: did you mean ViT-B-16"),
    ],
)
def test_a_name_that_leads_nowhere(
    command: list[str],
    name: str,
    answer: str,
    base: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "runs" / "models").mkdir(parents=True)
    (tmp_path / "runs" / "base").symlink_to(base)
    monkeypatch.chdir(tmp_path)
    words = [*command, name] if command[0] == "train" else [*command, name, "--data", "digits"]
    assert main(words) == 2
    assert answer in capsys.readouterr().err
    assert {each.name for each in (tmp_path / "runs").iterdir()} == {"base", "models"}
