"""`tracer eval … --suite imagenet` over replicas: a run, an export, a file of weights and a teacher take one path."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from closeness import length, same
from kept import estimates, measured, predictions
from replicas import SIZES, build

from studies.faults.process import CommandProcess, free_port, join_pair
from tracer.cli.app import main
from tracer.evaluation.suites.imagenet import SETS
from tracer.evaluation.suites.synsets import synsets
from tracer.runs.run import Run

SHIFTS = {"val", "v2", "r", "a", "sketch", "objectnet"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("imagenet"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, some_digits: Path) -> Path:
    """A run of two steps, for its weights."""
    out = tmp_path_factory.mktemp("runs") / "run"
    tiny = ["--model", "tiny-28", "--pretrained", "none", "--steps", "2", "--batch", "4", "--workers", "0"]
    assert main(["train", "--data", str(some_digits), *tiny, "--device", "cpu", "--out", str(out)]) == 0
    return out


def scores(out: Path, root: Path, *model: str) -> dict[tuple[str, str], float]:
    suite = ["--suite", "imagenet", "--root", str(root), "--templates", "name", "--device", "cpu"]
    assert main(["eval", *model, *suite, "--allow-partial", "--out", str(out)]) == 0
    found = estimates(out)
    assert all(each.partial for each in found.values()), (
        "a replica is not the complete set, and every number says so"
    )
    return {asked: each.value for asked, each in found.items()}


def test_run_export_and_file_score_alike(root: Path, run: Path, tmp_path: Path) -> None:
    assert main(["export", str(run), "--out", str(tmp_path / "model")]) == 0
    weights = tmp_path / "model" / "open_clip_model.safetensors"
    by_run = scores(tmp_path / "a", root, str(run))
    assert by_run == scores(tmp_path / "b", root, str(tmp_path / "model"))
    assert by_run == scores(tmp_path / "c", root, "tiny-28", "--pretrained", str(weights))
    assert len({shift for shift, _ in by_run}) == len(SHIFTS)


def test_predictions_are_kept_and_give_the_numbers_again(root: Path, run: Path, tmp_path: Path) -> None:
    found = scores(tmp_path, root, str(run))
    for (shift, metric), value in found.items():
        if metric == "accuracy":
            kept = predictions(tmp_path, shift)
            assert kept.accuracy == value
            assert len(kept.ids) == len(kept.label) == len(kept.logits)


def test_a_partial_suite_is_refused_unless_told(
    root: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", str(run), "--suite", "imagenet", "--root", str(root), "--device", "cpu"]) == 2
    assert "not complete" in capsys.readouterr().err


def test_check_ends_with_one_where_sets_are_missing(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["check", "imagenet", "--root", str(root)]) == 1
    assert "ImageNet-R: 6 of 30000 images" in capsys.readouterr().out
    assert main(["check", "imagenet", "--root", str(root / "nowhere")]) == 2
    assert "nowhere is not a folder" in capsys.readouterr().err.replace("\n", "")
    assert main(["check", "imagenet"]) == 2
    assert "imagenet is a suite: give --root" in capsys.readouterr().err
    assert main(["check", "digits", "--root", str(root)]) == 2
    for key in SHIFTS:
        monkeypatch.setitem(SETS, key, replace(SETS[key], size=SIZES[key]))
    (tmp_path / "imagenet").symlink_to(
        root
    )  # the folder of the suite may have its name, as in docs/reproduce.md
    assert main(["check", "imagenet", "--root", "imagenet"]) == 0
    assert main(["check", "emojishift"]) == 0


def test_sets_may_lie_elsewhere_even_as_a_data_set_of_the_hub(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()
    files = sorted((root / "val").glob("*/*.JPEG"))
    kind = datasets.ClassLabel(names=[*synsets()])
    features = datasets.Features({"image": datasets.Image(), "label": kind})
    rows = {
        "image": [{"bytes": file.read_bytes(), "path": None} for file in files],
        "label": [synsets().index(file.parent.name) for file in files],
    }
    part = datasets.Dataset.from_dict(rows, features=features)
    datasets.DatasetDict({"train": part.select([0]), "validation": part}).save_to_disk(tmp_path / "hub")
    place = f"val=hf:{tmp_path}/hub"
    arguments = [
        "eval",
        "tiny-28",
        "--pretrained",
        "none",
        "--suite",
        "imagenet",
        "--templates",
        "name",
        "--allow-partial",
    ]
    arguments += ["--device", "cpu", "--out"]
    assert main([*arguments, str(tmp_path / "a"), "--at", place]) == 0
    assert "ImageNet-R: not here" in capsys.readouterr().out
    assert main([*arguments, str(tmp_path / "b"), "--root", str(root)]) == 0
    there, here = (predictions(tmp_path / each, "ImageNet") for each in ("a", "b"))
    assert torch.equal(there.logits, here.logits)
    assert torch.equal(there.label, here.label)
    assert main(["check", "imagenet", "--at", place]) == 1
    said = capsys.readouterr().out
    assert "ImageNet: 6 of 50000 images in hf:" in said
    assert "ImageNet-R is missing" in said
    assert main(["check", "imagenet", "--at", "vall=x"]) == 2
    assert "did you mean val" in capsys.readouterr().err
    assert main([*arguments, str(tmp_path / "c"), "--at", "val"]) == 2
    assert "NAME=PLACE" in capsys.readouterr().err


def test_two_processes_measure_what_one_does(run: Path, some_digits: Path, tmp_path: Path) -> None:
    arguments, port = ["eval", str(run), "--data", str(some_digits), "--device", "cpu", "--out"], free_port()
    assert main([*arguments, str(tmp_path / "one")]) == 0
    two = [
        CommandProcess([*arguments, str(tmp_path / "two")], lambda rank=rank: join_pair(rank, port))
        for rank in range(2)
    ]
    for process in two:
        ended = process.wait()
        assert ended.code == 0, ended.output
    one, both = (measured(tmp_path / name) for name in ("one", "two"))
    assert one.keys() == both.keys()
    for metric, alone in one.items():
        assert alone.n == both[metric].n
        same(alone.value, both[metric].value, length(Run.open(run).student()), size=100, dtype=torch.float32)
