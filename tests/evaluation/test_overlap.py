"""Scores on images that a run was trained on are too good: eval, merge and train say so, whatever they are called."""

from __future__ import annotations

from pathlib import Path
from shutil import copy

import numpy as np
import pytest
from PIL import Image

import tracer
from tracer.cli.app import main
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan

TINY = ["--model", "tiny-28", "--pretrained", "none", "--device", "cpu"]


def write(root: Path, names: tuple[str, ...], count: int, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    for name in names:
        (root / name).mkdir(parents=True)
        for i in range(count):
            Image.fromarray(rng.integers(0, 256, (28, 28, 3), dtype=np.uint8)).save(root / name / f"{i}.png")
    return root


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run in `run`, trained on eight of ten images in `photos`."""
    folder = tmp_path_factory.mktemp("overlap")
    photos = write(folder / "photos", ("cat", "dog"), 5, seed=0)
    short = ["--steps", "1", "--batch", "4", "--templates", "name", "--workers", "0"]
    assert main(["train", "flyp", "--data", str(photos), *TINY, *short, "--out", str(folder / "run")]) == 0
    return folder


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main([*arguments, "--device", "cpu"]) == 0
    return " ".join(capsys.readouterr().err.split())


def test_eval_counts_the_images_that_were_trained_on(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate = ("eval", str(trained / "run"), "--out", str(tmp_path / "out"), "--data")
    assert "8 of 10 images of photos are also trained on" in said(capsys, *evaluate, str(trained / "photos"))
    renamed = write(tmp_path / "renamed", ("dog",), 1, seed=1)
    for i, image in enumerate(sorted((trained / "photos" / "cat").iterdir())):  # of which four are trained on
        copy(image, renamed / "dog" / f"copy-{i}.png")
    assert "4 of 6 images of renamed are also trained on" in said(capsys, *evaluate, str(renamed))
    (renamed / "linked").symlink_to(renamed / "dog")
    rows = [f"linked/copy-{i}.png,dog" for i in range(5)]
    (renamed / "links.csv").write_text("\n".join(["image,label", *rows]))
    assert "4 of 5 images of links.csv" in said(capsys, *evaluate, str(renamed / "links.csv"))
    fresh = write(tmp_path / "fresh", ("cat", "dog"), 2, seed=2)
    assert "trained on" not in said(capsys, *evaluate, str(fresh))


def test_nothing_is_said_where_the_training_data_have_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was trained on is then not known."""
    photos = write(tmp_path / "photos", ("cat", "dog"), 5, seed=0)
    short = ["--steps", "1", "--batch", "4", "--templates", "name", "--workers", "0"]
    assert main(["train", "flyp", "--data", str(photos), *TINY, *short, "--out", str(tmp_path / "run")]) == 0
    Image.new("RGB", (28, 28)).save(photos / "cat" / "0.png")
    assert "trained on" not in said(capsys, "eval", str(tmp_path / "run"), "--data", str(photos))


def test_evaluate_and_merge_warn_from_python(trained: Path, tmp_path: Path) -> None:
    photos = str(trained / "photos")
    with pytest.warns(UserWarning, match="8 of 10 images of photos are also trained on"):
        tracer.evaluate(trained / "run", photos, out=tmp_path / "out", device="cpu")
    with pytest.warns(UserWarning, match="also trained on") as caught:
        tracer.merge(trained / "run", wise=0.5, held_out=photos, retain=[photos], device="cpu")
    messages = [str(each.message) for each in caught]
    assert any("8 of 10 held-out images are also trained on" in each for each in messages)
    assert any("should be retained, are also trained on" in each for each in messages)


def test_a_plan_warns_of_retained_images_that_are_trained_on(trained: Path) -> None:
    photos = str(trained / "photos")
    settled = plan(
        Experiment(method="flyp", data=photos, retain=(photos,), model="tiny-28", pretrained="none")
    )
    assert any("8 of 10 images of" in each and "should be retained" in each for each in settled.warnings)
