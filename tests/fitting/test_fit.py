"""`tracer fit` from one end to the other, with the tiniest model: stopped, gone on with, tested once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tracer
from tracer.cli.app import main
from tracer.models.export import export
from tracer.models.student import load

pytestmark = pytest.mark.filterwarnings("ignore:.*")
SETTINGS = {"budget": "2-runs", "steps": 10, "batch": 8, "augment": "none", "device": "cpu"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, minute_model: Path) -> Path:
    """Red and blue pictures, which a linear probe tells apart, others to retain, and a model with random weights."""
    folder = tmp_path_factory.mktemp("fit")
    rng = np.random.default_rng(0)
    kinds = {"photos": (60, "red", "blue"), "others": (20, "warm", "cold")}
    for name, (count, *labels) in kinds.items():
        for label, channel in zip(labels, (0, 2), strict=True):
            (folder / name / label).mkdir(parents=True)
            for number in range(count):
                pixels = rng.integers(0, 60, (8, 8, 3), dtype=np.uint8)
                pixels[..., channel] += 150
                Image.fromarray(pixels).save(folder / name / label / f"{number}.png")
    export(load(str(minute_model), seed=0), folder / "model")
    return folder


class Stop(Exception):
    pass


def test_it_is_stopped_goes_on_and_looks_at_the_test_images_once(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(world)
    lines: list[str] = []

    def tell(line: str) -> None:
        lines.append(line)
        if line.startswith("Trial 2"):
            raise Stop

    with pytest.raises(Stop):
        tracer.fit("photos", model="model", retain="others", out="out", tell=tell, **SETTINGS)
    assert any(line.startswith("76 images to train on, 20 held out") for line in lines)
    done = {file: file.stat().st_mtime_ns for file in world.glob("out/trials/*/path.json")}
    assert len(done) == 2

    flags = [word for name, value in SETTINGS.items() for word in (f"--{name}", str(value))]
    command = ["fit", "--data", "photos", "--model", "model", "--retain", "others", "--out", "out", *flags]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "Plan, within 2-runs: 2 trials of 10 steps" in said
    assert "about 0 s left" in said.split("Trial 4: ")[1].replace("\n", " ")  # nothing is, after the last
    assert {file: file.stat().st_mtime_ns for file in done} == done  # read, not made again
    assert len([*world.glob("out/trials/*/path.json")]) == 4

    result = json.loads((world / "out" / "fit.json").read_text())
    assert result["looks"] == 1
    assert result["task"]["n"] == 24
    assert result["task"]["after"][1] == 1.0  # of all untouched images
    assert result["task"]["difference"][0] > 0
    assert result["commands"][0].startswith("tracer train l")  # lp or lpft
    assert result["sentence"].startswith(("Chosen: Linear probe", "Chosen: LP-FT"))
    assert "Trial 2: Linear probe: " in " ".join(lines)
    assert result["sentence"] in said
    assert "Learned against kept" in (world / "out" / "report.html").read_text(encoding="utf-8")

    again = tracer.fit("photos", model="model", retain="others", out="out", tell=lines.append, **SETTINGS)
    assert json.loads((world / "out" / "fit.json").read_text())["looks"] == 1
    assert again.sentence == result["sentence"]
    assert again.verdict.task.n == 24
    sure = tracer.fit(
        "photos", model="model", retain="others", out="out", keep=0.9, tell=lines.append, **SETTINGS
    )
    result = json.loads((world / "out" / "fit.json").read_text())
    assert (result["keep"], result["looks"]) == (0.9, 1)  # the same model for another reason
    assert "sure to keep 0.9" in sure.reason
    model = again.run.student()
    assert model.head is not None
    assert (world / "out" / "best").resolve() == again.run.folder.resolve()


def test_what_cannot_be_done_is_refused_before_anything_is_written(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(world)
    common = ["fit", "--data", "photos", "--model", "model", "--out", "none"]
    for flags, message in (
        (["--budget", "soon"], "--budget soon: expected a time such as 30m"),
        (["--keep", "97"], "--keep 97.0 is a share"),
        (["--pretrained", "none"], "random weights knows nothing"),
    ):
        assert main([*common, *flags]) == 2
        assert message in capsys.readouterr().err.replace("\n", " ")
    with pytest.raises(tracer.UserError, match="argument of fit 'lr'"):
        tracer.fit("photos", model="model", lr=1e-3)
    assert not (world / "none").exists()


def test_a_budget_that_is_too_short_is_refused_before_the_probe_is_scored(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world)
    settings = {**SETTINGS, "budget": "0.01s"}
    with pytest.raises(tracer.UserError, match=r"the budget is too short: .* give --budget \d+m or more"):
        tracer.fit("photos", model="model", retain="others", out="short", tell=lambda line: None, **settings)
    assert not [*world.glob("short/trials/*/path.json")]


def test_ctrl_c_between_two_trials_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tracer.cli.commands.fit.fitted", interrupted)
    assert main(["fit", "--data", "photos", "--model", "tiny-28"]) == 130
    assert "the same command goes on" in capsys.readouterr().err
