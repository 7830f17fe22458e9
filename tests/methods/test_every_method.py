"""Every method there is trains, resumes bit for bit, exports and evaluates: a new file is covered by being there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
import torch

from tracer.api.run import Machine, Observer, run
from tracer.cli.app import main
from tracer.core.command_line import flag
from tracer.methods.base import methods
from tracer.models.open_clip_compat import open_clip
from tracer.models.student import read_weights
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.runs.run import Run
from tracer.storage.room import size
from tracer.training.footprint import footprint
from tracer.training.loop import Training

Make = Callable[..., Experiment]
CPU = Machine(device="cpu", workers=0)
QUIET = Observer(warn=lambda message: None)  # the classes of these data are numbers


@pytest.mark.parametrize("name", methods())
def test_trains_and_resumes_bit_for_bit(name: str, experiment: Make, tmp_path: Path) -> None:
    asked = experiment(name)
    interrupted(asked, tmp_path / "resumed", after=2)
    run(asked, tmp_path / "resumed", CPU, QUIET)
    run(asked, tmp_path / "whole", CPU, QUIET)
    equal(tmp_path / "whole", tmp_path / "resumed", "result")
    foreseen(asked, tmp_path / "whole")


# What an export or an evaluation can meet: no head, a head, a head that was solved for, the teacher as result.
@pytest.mark.parametrize("name", ["tracer", "ft", "lp", "ema", "zeroshot"])
def test_exports_and_evaluates(name: str, experiment: Make, tmp_path: Path) -> None:
    asked, whole = experiment(name), tmp_path / "whole"
    assert main(["train", name, *flags(asked), "--out", str(whole), "--device", "cpu"]) == 0
    assert main(["export", str(whole)]) == 0
    exported = open_clip.create_model(f"local-dir:{whole / 'export' / 'result'}").state_dict()
    kept = read_weights(whole / "weights" / "result.safetensors")
    assert all(torch.equal(tensor, kept[f"clip.{key}"]) for key, tensor in exported.items())
    evaluated = ["--data", asked.data, "--templates", str(asked.templates), "--device", "cpu"]
    assert main(["eval", str(whole), *evaluated]) == 0


def interrupted(asked: Experiment, folder: Path, after: int) -> None:
    """Train from Python and stop dead once a checkpoint is written."""
    settled = plan(asked)
    begun = Run.create(settled, folder)
    training = Training(settled, begun, World("cpu", "fp32"), save_every=1)
    reports = iter(training)
    for _ in reports:
        training.writer.finish()
        if (begun.resume / f"step-{after:09d}").exists():
            break
    reports.close()


def foreseen(asked: Experiment, folder: Path) -> None:
    """What a run writes is known before it begins: nearly, and never less."""
    settled = plan(asked)
    expected = footprint(settled, asked.pretrained_model())
    largest = max(map(size, (folder / "resume").glob("step-*")), default=0)
    for one, other in (
        (expected.checkpoint, largest),
        (expected.weights, size(folder / "weights")),
        (expected.predictions, size(folder / "predictions")),
        (
            expected.log,
            size(folder) - sum(size(folder / name) for name in ("resume", "weights", "predictions")),
        ),
    ):
        assert other <= one
        assert one <= other * 1.02 + 100_000


def equal(one: Path, other: Path, name: str) -> None:
    mine, theirs = (read_weights(folder / "weights" / f"{name}.safetensors") for folder in (one, other))
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[key], theirs[key]) for key in mine)


def flags(asked: Experiment) -> list[str]:
    """The experiment as a command line."""
    usual = Experiment(data=asked.data).to_json()
    given = {name: value for name, value in asked.to_json().items() if name == "data" or value != usual[name]}
    given = {name: value for name, value in given.items() if name not in ("method", "options")}
    given |= {name: value for name, value in asked.options.items() if name == "anchors"}
    defaults = {each.name: each.default for each in fields(Experiment)}
    words = [
        flag(name, value) for name, value in given.items() if value not in (None, (), defaults.get(name))
    ]
    return [word for pair in words for word in pair]
