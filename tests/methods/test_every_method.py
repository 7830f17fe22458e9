"""Every method there is trains, resumes bit for bit, exports and evaluates: a new file is covered by being there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tracer.cli.app import main
from tracer.methods.base import methods
from tracer.models.open_clip_compat import open_clip
from tracer.models.student import read_weights
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.runs.run import Run
from tracer.training.loop import Training

Make = Callable[..., Experiment]


@pytest.mark.usefixtures("few_names")
@pytest.mark.parametrize("name", methods())
def test_trains_resumes_exports_and_evaluates(name: str, experiment: Make, tmp_path: Path) -> None:
    asked = experiment(name)
    interrupted(asked, tmp_path / "resumed", after=2)
    assert main(["resume", str(tmp_path / "resumed"), "--device", "cpu"]) == 0

    whole = tmp_path / "whole"
    assert main(["train", name, *flags(asked), "--out", str(whole), "--device", "cpu"]) == 0
    equal(whole, tmp_path / "resumed", "result")

    assert main(["export", str(whole)]) == 0
    exported = open_clip.create_model(f"local-dir:{whole / 'export' / 'result'}").state_dict()
    kept = read_weights(whole / "weights" / "result.safetensors")
    assert all(torch.equal(tensor, kept[f"clip.{key}"]) for key, tensor in exported.items())
    evaluated = ["--data", asked.data, "--templates", str(asked.templates), "--device", "cpu"]
    assert main(["eval", str(whole), *evaluated]) == 0


def interrupted(asked: Experiment, folder: Path, after: int) -> None:
    """Train from Python and stop dead once a checkpoint is written."""
    made = plan(asked)
    run = Run.create(made, folder)
    reports = iter(Training(made, run, World("cpu", "fp32"), save_every=1))
    for _ in reports:
        if (run.resume / f"step-{after:09d}").exists():
            break
    reports.close()


def equal(one: Path, other: Path, name: str) -> None:
    mine, theirs = (read_weights(folder / "weights" / f"{name}.safetensors") for folder in (one, other))
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[key], theirs[key]) for key in mine)


def flags(asked: Experiment) -> list[str]:
    """The experiment as a command line."""
    given = {name: value for name, value in asked.to_json().items() if name not in ("method", "options")}
    given |= {name: value for name, value in asked.options.items() if name == "anchors"}
    found = []
    for name, value in given.items():
        if value not in (None, (), False):
            found += [f"--{name.replace('_', '-')}", str(value)]
    return found
