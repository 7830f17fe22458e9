"""Options that change the path through the loop: solved heads, regularizers, anchors, block features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from closeness import length, same
from methods.test_every_method import equal, flags, interrupted

from tracer.cli.app import main
from tracer.core.errors import UserError
from tracer.models.student import block_features, load, read_weights
from tracer.runs.experiment import Experiment
from tracer.runs.identity import identity
from tracer.runs.plan import plan

Make = Callable[..., Experiment]


def result(folder: Path) -> dict[str, torch.Tensor]:
    return read_weights(folder / "weights" / "result.safetensors")


@pytest.mark.parametrize("regularizer", ["ftp", "spd:1", "l2sp:0.1"])
def test_a_tethered_run_resumes_bit_for_bit(regularizer: str, experiment: Make, tmp_path: Path) -> None:
    asked = replace(experiment("flyp"), regularizer=regularizer)
    interrupted(asked, tmp_path / "resumed", after=2)
    assert main(["resume", str(tmp_path / "resumed"), "--device", "cpu"]) == 0
    assert main(["train", "flyp", *flags(asked), "--out", str(tmp_path / "whole"), "--device", "cpu"]) == 0
    equal(tmp_path / "whole", tmp_path / "resumed", "result")


@pytest.mark.parametrize("name", ["lp", "lpft"])
def test_a_solved_probe_needs_no_steps_of_its_own(name: str, experiment: Make, tmp_path: Path) -> None:
    asked = experiment(name, solver="lbfgs")
    made = plan(asked)
    assert made.stage_steps == ([0] if name == "lp" else [0, 3])
    out = tmp_path / "run"
    assert (
        main(["train", name, *flags(asked), "--solver", "lbfgs", "--out", str(out), "--device", "cpu"]) == 0
    )
    kept = result(out)
    assert "head.scale" not in kept
    start = load(asked.model, seed=0).state_dict()
    still = all(torch.equal(kept[key], start[key]) for key in start)
    assert still == (name == "lp")


def test_a_frozen_head_stays_the_zero_shot_classifier(experiment: Make) -> None:
    from methods.test_identities import student

    made = plan(experiment("ft", frozen_head=True))
    free = plan(experiment("ft"))
    one, two, end = student(made, steps=1), student(made, steps=2), student(free, steps=2)
    assert torch.equal(one["head.weight"], two["head.weight"])
    assert not torch.equal(one["head.weight"], end["head.weight"])


def test_arf_without_anchors_says_what_is_missing(experiment: Make, few: Path) -> None:
    with pytest.raises(UserError, match=r"arf.*few\.npz.*--anchors"):
        plan(experiment("arf", anchors=""))
    assert plan(experiment("arf", anchors="", strength=0.0)).anchors is None
    assert len(plan(experiment("arf", anchors=str(few))).anchors or ()) == 36


def test_other_anchors_are_another_run(experiment: Make, few: Path, tmp_path: Path) -> None:
    """The same path with other pictures' labels behind it is not the same experiment."""
    anchors = tmp_path / "anchors.npz"
    stored = dict(np.load(few))
    np.savez(anchors, **stored)
    before = identity(plan(experiment("arf", anchors=str(anchors))))
    np.savez(anchors, images=stored["images"], labels=stored["labels"][::-1])
    assert identity(plan(experiment("arf", anchors=str(anchors)))) != before


@pytest.mark.parametrize("model", ["tiny-28", "tiny-32"])
def test_block_features_come_with_the_same_embedding(model: str) -> None:
    student = load(model, seed=0).eval()
    size = student.preprocess_cfg["size"]
    pixels = torch.randn(2, 3, *(size if isinstance(size, tuple | list) else (size, size)))
    with torch.no_grad():
        features, blocks = block_features(student.clip, pixels)
        same(features, student.encode_image(pixels), length(student))
    assert len(blocks) == student.config["vision_cfg"]["layers"]
    assert all(block.shape == (2, student.config["vision_cfg"]["width"]) for block in blocks)


def test_block_features_of_a_resnet_are_pooled() -> None:
    from tracer.models.open_clip_compat import open_clip

    tower = open_clip.modified_resnet.ModifiedResNet([1, 1, 1, 1], 32, 8, image_size=64, width=16).eval()
    holder = torch.nn.Module()
    holder.visual = tower
    pixels = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        features, blocks = block_features(holder, pixels)
        same(features, tower(pixels), length(tower))
    assert [block.shape[0] for block in blocks] == [2] * 5
    assert all(block.ndim == 2 for block in blocks)
