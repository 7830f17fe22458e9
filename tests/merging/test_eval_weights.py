"""Every set of weights of a run, merged ones among them, is measured by the path that measures the result."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import torch
from closeness import length, same
from kept import estimates, predictions
from merging.conftest import Finished

from tracer.cli.app import main
from tracer.data.sources import load
from tracer.evaluation.predict import Scorer
from tracer.measure.answers import Predictions
from tracer.merging.run_group import run_group
from tracer.merging.wise import interpolate
from tracer.models.student import initialise_from, read_weights
from tracer.parallel import World
from tracer.runs.run import Run

PROMPT = "the digit {}"  # of the runs, so that eval takes it without being told


def evaluated(run: Path, few: Path, weights: str) -> Predictions:
    assert main(["eval", str(run), "--weights", weights, "--data", str(few), "--device", "cpu"]) == 0
    folder = run / "predictions" / weights
    found, accuracy = predictions(folder, few.name), estimates(folder)[few.name, "accuracy"]
    assert accuracy.value == found.accuracy
    assert accuracy.n == len(load(few))
    return found


@pytest.mark.parametrize("method", ["ft", "flyp"])
def test_merged_weights(method: str, finished: Finished, few: Path) -> None:
    run = finished(method)
    assert main(["merge", str(run), "--wise", "0.5", "--name", "halfway", "--device", "cpu"]) == 0
    found = evaluated(run, few, "halfway")
    group = run_group([Run.open(run)])
    student = Run.open(run).student("halfway")
    initialise_from(
        student, interpolate(group.start, read_weights(Run.open(run).weights_file("result")), 0.5)
    )
    data = load(few)
    scorer = Scorer(student, World("cpu", "fp32"), data.classes)
    same(found.logits, scorer.predict(data, (PROMPT,)).logits, length(scorer.student))
    assert scorer.by_head(data.classes) == (method == "ft")
    assert not torch.allclose(found.logits, evaluated(run, few, "result").logits)


def test_a_teacher(finished: Finished, few: Path) -> None:
    run = finished("tracer")
    found, student = (evaluated(run, few, name) for name in ("teacher", "student"))
    data = load(few)
    scorer = Scorer(Run.open(run).student("teacher"), World("cpu", "fp32"), data.classes)
    same(found.logits, scorer.predict(data, (PROMPT,)).logits, length(scorer.student))
    assert not torch.allclose(found.logits, student.logits)


def test_merged_weights_are_compared_with_the_pretrained_model_in_a_last_sentence(
    finished: Finished, few: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = finished("flyp")
    assert main(["merge", str(run), "--wise", "0.25", "--device", "cpu"]) == 0
    capsys.readouterr()
    evaluate = ["eval", str(run), "--data", str(few), "--device", "cpu", "--weights"]
    assert main([*evaluate, "wise-0.25"]) == 0
    sentence, command = capsys.readouterr().out.splitlines()[-2:]
    assert "% of 36 images" in sentence
    assert "→" in sentence
    assert command == f"Next: tracer report {shlex.quote(str(run))}"
    assert main([*evaluate, "pretrained"]) == 0
    assert "It names right" in capsys.readouterr().out.splitlines()[-1]


def test_weights_that_are_not_there_are_named(
    finished: Finished, few: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["eval", str(finished("ft")), "--weights", "teachers", "--data", str(few), "--device", "cpu"]
    assert main(asked) == 2
    assert "has no teachers weights; it has: " in capsys.readouterr().err
