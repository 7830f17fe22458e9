"""The pretrained model is scored once for all runs on the same data, and again if anything has changed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tracer.evaluation import predict, pretrained
from tracer.evaluation.measured import Measured
from tracer.evaluation.pretrained import measure_pretrained
from tracer.models.export import export
from tracer.models.student import Student, load
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.runs.plan import Plan, plan
from tracer.runs.run import Run
from tracer.training.loop import Training


@pytest.fixture
def experiment(
    tmp_path: Path, minute_model: Path, some_digits: Path, monkeypatch: pytest.MonkeyPatch
) -> Experiment:
    monkeypatch.setenv("TRACER_CACHE", str(tmp_path / "cache"))
    export(load(str(minute_model), seed=0), tmp_path / "model")
    return Experiment(
        data=str(some_digits),
        method="flyp",
        model=str(tmp_path / "model"),
        templates="name",
        steps=2,
        batch=4,
    )


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans whose model was scored, and not read from the cache."""
    plans, measure = [], pretrained.measure

    def counted(settled: Plan, *arguments: object) -> Measured:
        plans.append(settled)
        return measure(settled, *arguments)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(pretrained, "measure", counted)
    return plans


def scores(experiment: Experiment) -> Measured:
    settled = plan(experiment)
    return measure_pretrained(settled, World("cpu", "fp32"), settled.experiment.pretrained_model(), 0)


def test_a_second_run_reads_the_scores_of_the_first(experiment: Experiment, scored: list[Plan]) -> None:
    first, second = scores(experiment), scores(replace(experiment, method="tracer", lr=1e-3, seed=1))
    assert len(scored) == 1
    assert first.held_out is not None
    assert second.held_out is not None
    assert torch.equal(first.held_out.logits, second.held_out.logits)
    assert list(first.held_out.ids) == list(second.held_out.ids)
    assert first.hits == second.hits
    assert first.scores([]) == second.scores([])


def test_other_weights_data_or_prompts_are_scored_again(
    experiment: Experiment, scored: list[Plan], minute_model: Path, tmp_path: Path, some_digits: Path
) -> None:
    scores(experiment)
    scores(replace(experiment, templates="digit"))
    archive = dict(np.load(some_digits))
    np.savez(tmp_path / "other.npz", **(archive | {"images": 255 - archive["images"]}))
    scores(replace(experiment, data=str(tmp_path / "other.npz")))
    export(load(str(minute_model), seed=1), tmp_path / "model")
    scores(experiment)
    assert len(scored) == 4


def test_a_random_start_is_not_cached(experiment: Experiment, scored: list[Plan], tmp_path: Path) -> None:
    for _ in range(2):
        scores(replace(experiment, model="tiny-28", pretrained="none"))
    assert len(scored) == 2
    assert not (tmp_path / "cache" / "pretrained").exists()


def test_a_damaged_file_is_replaced_and_old_ones_are_deleted(
    experiment: Experiment, scored: list[Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = scores(experiment)
    (file,) = (tmp_path / "cache" / "pretrained").iterdir()
    whole = bytearray(file.read_bytes())
    assert first.held_out is not None
    place = whole.index(first.held_out.logits[0].numpy().tobytes())
    flipped = bytes(whole[:place]) + bytes([whole[place] ^ 1]) + bytes(whole[place + 1 :])
    for count, damaged in enumerate((b"{}", b"", flipped), start=2):
        file.write_bytes(damaged)
        again = scores(experiment)
        assert again.hits == first.hits
        assert again.held_out is not None
        assert torch.equal(again.held_out.logits, first.held_out.logits)
        assert len(scored) == count
    monkeypatch.setattr(pretrained, "MOST_FILES", 1)
    scores(replace(experiment, templates="digit"))
    assert len(list(file.parent.iterdir())) == 1


def test_the_classifier_of_a_frozen_text_tower_serves_before_and_after(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts, built = tmp_path / "prompts.txt", []
    prompts.write_text("\n".join(f"photo {number} of a {{}}" for number in range(30)))
    build = predict._zero_shot_classifier

    def counted(
        student: Student, classes: tuple[str, ...], templates: tuple[str, ...], *more: bool
    ) -> object:
        built.append(len(templates))
        return build(student, classes, templates, *more)

    monkeypatch.setattr(predict, "_zero_shot_classifier", counted)
    for tune, count in (("image", 1), ("both", 2)):
        own = replace(experiment, templates=str(prompts), options={"tune": tune}, seed=count)
        shutil.rmtree(tmp_path / "cache" / "pretrained", ignore_errors=True)
        settled = plan(own)
        Training(settled, Run.create(settled, tmp_path / tune), World("cpu", "fp32")).finish()
        assert built.count(30) == count
        built.clear()
