"""Retention: which images are compared, when a person is warned, what is advised, and that it is printed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracer.cli.app import main
from tracer.evaluation import summary as outcome
from tracer.evaluation.summary import (
    COLLAPSED,
    MAX_COMPARED,
    advice,
    compared_indices,
    describe_compared,
    warnings,
)
from tracer.methods.base import methods, options
from tracer.models.open_clip_compat import open_clip


def result(agreement: float = 1.0, before: float = 0.8, after: float = 0.8) -> dict[str, Any]:
    return {
        "before": {"retain": {"pets": before}},
        "after": {"retain": {"pets": after}},
        "retention": {"agreement": agreement, "kl": 0.1},
    }


def test_all_held_out_images_are_compared_or_a_thousand_from_everywhere() -> None:
    for images in (1, 7, MAX_COMPARED):
        assert compared_indices(images).tolist() == list(range(images))
    labels = np.repeat(np.arange(1000), 50)  # the validation images of ImageNet, in order of class
    assert Counter(labels[compared_indices(len(labels))].tolist()) == Counter(range(1000))
    for images in (1001, 1999, 2500):
        chosen = compared_indices(images)
        gaps = np.diff([*chosen, images])
        assert len(chosen) == MAX_COMPARED
        assert chosen[0] == 0
        assert set(gaps) <= {images // MAX_COMPARED, images // MAX_COMPARED + 1}


def test_it_is_said_how_many_were_compared() -> None:
    assert describe_compared(12) == "12 held-out images"
    assert describe_compared(50_000) == "1000 of 50000 held-out images, evenly spaced,"


def test_nothing_is_told_at_the_threshold_and_something_below() -> None:
    assert warnings(result(agreement=COLLAPSED), "tracer") == []
    assert warnings(result(after=0.8 * COLLAPSED), "tracer") == []
    lost, told = warnings(result(agreement=COLLAPSED - 0.01), "tracer")
    assert lost == "it agrees with the pretrained model on only 49% of images"
    assert told == advice("tracer")
    lost, told = warnings(result(after=0.8 * COLLAPSED - 0.01), "ft")
    assert lost == "pets fell from 80.0% to 39.0%"
    assert told == advice("ft")
    assert len(warnings(result(agreement=0.0, after=0.0), "ft")) == 3


@pytest.mark.parametrize("method", methods())
def test_only_flags_that_a_method_has_are_recommended(method: str) -> None:
    if "--strength" in advice(method):
        assert "strength" in {option.name for option in options(method)}
    assert "--lr" in advice(method)


def test_advice_fits_the_method() -> None:
    assert "--strength" in advice("tracer")
    assert "--strength" not in advice("ft")
    assert "--strength" not in advice("clipood"), "its strength widens a margin and holds nothing"


def test_a_collapse_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_clip, "IMAGENET_CLASSNAMES", open_clip.IMAGENET_CLASSNAMES[:24])
    monkeypatch.setattr(outcome, "agreement", lambda *_: 0.25)
    monkeypatch.setattr(outcome, "MAX_COMPARED", 20)
    small = ["--model", "tiny-28", "--pretrained", "none", "--steps", "1", "--batch", "4", "--device", "cpu"]
    asked = ["train", "flyp", "--data", "digits", *small, "--templates", "name"]
    assert main([*asked, "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr()
    assert "On 25.0 % of 20 of " in said.out
    assert "held-out images, evenly spaced, it still picks the pretrained model's ImageNet name" in said.out
    assert "retention: it agrees with the pretrained model on only 25% of images" in said.err
    assert f"retention: {advice('flyp')}" in said.err
