"""A run knows the weights it began with: others under the same name are refused, the same ones are not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tracer.api.run import run as carry_out
from tracer.cli.app import main
from tracer.core.errors import UserError
from tracer.models.export import export
from tracer.models.student import load
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.runs.run import Run
from tracer.training.loop import Training

OTHERS = "in its weights"


@pytest.fixture
def begun(tmp_path: Path, some_digits: Path) -> Run:
    """Two steps of six, from a model of its own."""
    export(load("tiny-28", seed=3), tmp_path / "model")
    drawn = plan(experiment(some_digits, tmp_path / "model"))
    run = Run.create(drawn, tmp_path / "run")
    steps = iter(Training(drawn, run, World("cpu", "fp32"), save_every=2))
    while next(steps).step < 3:
        pass
    steps.close()
    return run


def experiment(data: Path, model: Path) -> Experiment:
    return Experiment(data=str(data), model=str(model), steps=6, batch=8, lr=1e-3, templates="the digit {}")


def replace(model: Path, seed: int) -> None:
    shutil.rmtree(model)
    export(load("tiny-28", seed=seed), model)


def test_a_run_does_not_go_on_from_other_weights(begun: Run, capsys: pytest.CaptureFixture[str]) -> None:
    model = begun.folder.parent / "model"
    replace(model, seed=4)
    assert main(["resume", str(begun.folder), "--device", "cpu"]) != 0
    assert OTHERS in " ".join(capsys.readouterr().err.split())
    with pytest.raises(UserError, match=OTHERS):
        carry_out(begun.experiment, begun.folder)
    with pytest.raises(UserError, match=OTHERS):
        begun.student("pretrained")
    replace(model, seed=3)
    assert main(["resume", str(begun.folder), "--device", "cpu"]) == 0
    assert begun.finished


def test_a_finished_run_is_not_taken_for_one_of_other_weights(begun: Run) -> None:
    model = begun.folder.parent / "model"
    assert main(["resume", str(begun.folder), "--device", "cpu"]) == 0
    replace(model, seed=4)
    with pytest.raises(UserError, match=OTHERS):
        carry_out(begun.experiment, begun.folder)


def test_a_weights_file_is_known_as_a_folder_is(tmp_path: Path) -> None:
    for seed in (3, 4):
        export(load("tiny-28", seed=seed), tmp_path / str(seed))
    weights = tmp_path / "weights.safetensors"
    asked = Experiment(data="digits", model="tiny-28", pretrained=str(weights), steps=2, batch=8)
    shutil.copy(tmp_path / "3" / "open_clip_model.safetensors", weights)
    run = Run.create(plan(asked), tmp_path / "run")
    run.require(plan(asked))
    shutil.copy(tmp_path / "4" / "open_clip_model.safetensors", weights)
    with pytest.raises(UserError, match=OTHERS):
        run.require(plan(asked))
