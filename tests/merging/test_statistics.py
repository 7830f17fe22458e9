"""BatchNorm statistics of a merge: the pretrained ones if no run moved them, else estimated anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from merging.conftest import Finished

import tracer
from tracer.models.export import export
from tracer.models.student import load
from tracer.runs.run import Run

STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


@pytest.fixture(scope="module")
def convolutional(minute: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small model with BatchNorm in its image tower."""
    text = json.loads(Path(minute).read_text())["text_cfg"]
    vision = {"image_size": 32, "layers": [1, 1, 1, 1], "width": 8}
    file = tmp_path_factory.mktemp("convolutional") / "model.json"
    file.write_text(json.dumps({"embed_dim": 8, "vision_cfg": vision, "text_cfg": text}))
    return str(file)


@pytest.fixture(scope="module")
def pretrained(convolutional: str) -> dict[str, str]:
    """The settings of a run that starts from a folder with weights of such a model."""
    folder = Path(convolutional).parent / "model"
    export(load(convolutional), folder)
    return {"model": str(folder), "pretrained": "auto"}


def changed(run: Run, weights: str) -> list[str]:
    """The statistics of these weights that are not the pretrained ones."""
    start, end = run.student("pretrained").state_dict(), run.student(weights).state_dict()
    return [name for name in start if name.endswith(STATISTICS) and not torch.equal(start[name], end[name])]


@pytest.mark.parametrize(("tune", "adapter"), [("both", "lora:rank=2"), ("last-1", None), ("biases", None)])
def test_frozen_statistics_stay_the_pretrained_ones(
    tune: str, adapter: str | None, finished: Finished, convolutional: str, tmp_path: Path
) -> None:
    run = Run.open(finished("flyp", {"tune": tune}, model=convolutional, adapter=adapter))
    mixture = tracer.merge(run, wise=0.5, device="cpu")
    assert not changed(mixture, mixture.weights)
    if adapter is not None:
        assert tracer.export(mixture, tmp_path / "adapter", weights=mixture.weights, format="peft").exists()


def test_statistics_that_moved_are_estimated_anew(finished: Finished, convolutional: str) -> None:
    run = Run.open(finished("flyp", model=convolutional))
    mixture = tracer.merge(run, wise=0.5, device="cpu")
    weights, start = (mixture.student(name).state_dict() for name in (mixture.weights, "pretrained"))
    (mean, *_) = (name for name in changed(mixture, mixture.weights) if name.endswith("running_mean"))
    line = (start[mean] + run.student("result").state_dict()[mean]) / 2
    assert not torch.allclose(weights[mean], line)


@pytest.mark.parametrize("method", ["flyp", "stock", "ema"])
def test_a_pretrained_start_keeps_its_own_through_training_and_merging(
    method: str, finished: Finished, pretrained: dict[str, str]
) -> None:
    """The replicas of Model Stock and an averaging teacher have copies of them."""
    run = Run.open(finished(method, **pretrained))
    assert run.experiment.batchnorm == "keep"
    assert not run.result["statistics_moved"]
    assert not changed(run, "result")
    mixture = tracer.merge(run, wise=0.5, device="cpu")
    assert not changed(mixture, mixture.weights)


def test_nothing_is_lost_where_no_weight_moves(finished: Finished, pretrained: dict[str, str]) -> None:
    """At a rate of nearly 0 a model answers as before; with updated statistics it is another one."""
    kept, trained = (
        Run.open(finished("flyp", **pretrained, lr=1e-12, batchnorm=choice)) for choice in ("auto", "train")
    )
    images = torch.randint(
        256, (16, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
    )
    start = kept.student("pretrained").eval()
    with torch.no_grad():
        before, *after = (
            each.embed_image(each.pixels(images))
            for each in (start, *(run.student("result").eval() for run in (kept, trained)))
        )
    torch.testing.assert_close(after[0], before)
    assert not torch.allclose(after[1], before, atol=1e-2)
    assert trained.result["statistics_moved"]


def test_statistics_of_random_weights_are_trained_and_nothing_is_said_of_them(
    finished: Finished, convolutional: str
) -> None:
    run = Run.open(finished("flyp", model=convolutional))
    assert run.experiment.batchnorm == "train"
    assert changed(run, "result")
    assert not run.result["statistics_moved"], "there was nothing to keep"
