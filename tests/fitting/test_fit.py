"""`tracer fit` from one end to the other, with the tiniest model: stopped, gone on with, tested once."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tracer
from tracer.api.run import Machine
from tracer.cli.app import main
from tracer.fitting.fit import Request
from tracer.fitting.parts import seen_warning
from tracer.models.export import export
from tracer.models.student import load
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.runs.run import Run

pytestmark = pytest.mark.filterwarnings("ignore:.*")
SETTINGS: dict[str, Any] = {"budget": "2-runs", "steps": 10, "batch": 8, "augment": "none", "device": "cpu"}


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
    last = said.split("Trial 4: ")[1].replace("\n", " ")
    assert "next: the test of the choice" in last.split("Testing the choice on 24 images")[0]
    assert " s left" not in last
    assert {file: file.stat().st_mtime_ns for file in done} == done  # read, not made again
    assert len([*world.glob("out/trials/*/path.json")]) == 4

    result = json.loads((world / "out" / "fit.json").read_text())
    assert result["looks"] == 1
    assert result["task"]["n"] == 24
    assert result["task"]["after"][1] == 1.0  # of all untouched images
    assert result["task"]["difference"][0] > 0
    assert result["commands"][0].startswith("tracer train l")  # lp or lpft
    assert result["sentence"].startswith(("Chosen: Linear probe", "Chosen: LP-FT"))
    assert "Trial 2: Linear probe: 100.0 [83.9, 100.0] %, keeps all; best so far" in lines
    assert "24 untouched test images" in result["sentence"]
    assert result["warning"] == ""
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
    assert Run.open(world / "out" / "best").weights == again.run.weights
    picture = next((world / "photos").rglob("*.*"))
    shutil.copy(picture, world / "photo.jpg")
    line = said.partition("In Python it names a photograph with: ")[2].splitlines()[0]
    assert eval(line)[0].name == picture.parent.name
    card = (tracer.export(again.run, world / "exported") / "README.md").read_text()
    assert f"On images that chose nothing: {again.sentence}" in card


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
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"lr": 1e-3}, "argument of fit 'lr'"),
        ({"budget": 2.5}, "budget=2.5: expected a time such as 30m"),
        ({"budget": 1}, "--budget 1-runs is too small"),
        ({"pretrained": "none"}, "random weights knows nothing"),
    )
    for settings, message in refused:
        with pytest.raises(tracer.UserError, match=message):
            tracer.fit("photos", model="model", out="none", **settings)
    assert not (world / "none").exists()


def test_images_that_the_model_was_trained_on_are_not_called_untouched(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run as the model, on its own data, on some of them, and on others."""
    monkeypatch.chdir(world)
    tracer.finetune(
        "photos", method="ft", model="model", steps=1, batch=8, device="cpu", workers=0, out="before"
    )
    lines: list[str] = []
    settings: dict[str, Any] = {**SETTINGS, "budget": 2}
    found = tracer.fit("photos", model="before", retain="others", out="seen", tell=lines.append, **settings)
    assert lines[0].startswith("Warning: photos are the data of before: the model was trained on ")
    assert re.search(r"trained on \d+ of 24 test images and \d+ of 20 held-out images in before", lines[0])
    assert found.warning in found.sentence
    assert "untouched" not in found.sentence
    assert json.loads((world / "seen" / "fit.json").read_text())["warning"] == found.warning

    run = tracer.Run.open(Path("before"))
    trained = plan(Experiment(method="ft", data="photos", model="model", steps=1)).train.take(np.arange(9))
    others = plan(Experiment(method="ft", data="others", model="model", steps=1))
    assert seen_warning(run, others, others.held_out) == ""
    mixed = seen_warning(run, others, trained)
    assert mixed.startswith(
        "the model was trained on 9 of 9 test images and 0 of 8 held-out images in before"
    )


def test_where_the_pretrained_model_stays_the_command_with_a_larger_budget_is_next(tmp_path: Path) -> None:
    machine = Machine(device="cpu")
    base = Experiment(data="my photos", method="zeroshot", retain=("a", "b"), steps=10)
    longer = Request(base, "30m", 0.9, tmp_path).longer(machine)
    assert longer == (
        "tracer fit --data 'my photos' --retain a b --steps 10 --keep 0.9 "
        f"--out {shlex.quote(str(tmp_path))} --device cpu --budget 60m"
    )
    assert "--model runs/one" in Request(base, run=tracer.Run(Path("runs/one"))).longer(machine)
    for other in (
        replace(base, decay=0.2),
        replace(base, data="memory:1a2b"),
    ):  # for which there are no flags
        assert Request(other, "2-runs").longer(machine) == 'the same call with budget="4-runs"'


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
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tracer.cli.commands.fit.fit", interrupted)
    assert main(["fit", "--data", "photos", "--model", "tiny-28"]) == 130
    assert "the same command goes on" in capsys.readouterr().err
