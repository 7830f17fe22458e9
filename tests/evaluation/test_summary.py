"""Retention: which images are compared, when a person is warned, what is advised, and that it is printed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tracer.cli.app import main
from tracer.core.metrics import wilson_interval
from tracer.evaluation import measured as measurement
from tracer.evaluation import summary
from tracer.evaluation.measured import MAX_COMPARED, compared_indices, describe_compared
from tracer.evaluation.probe import can_name, emoji_probe
from tracer.evaluation.summary import advice, warnings
from tracer.evaluation.verdict import COLLAPSED, Change, Verdict, names_kept
from tracer.methods.base import methods, options
from tracer.models.export import export
from tracer.models.student import load
from tracer.report.measures import Key, measured
from tracer.report.run_data import read_run


def outcome(before: float = 0.8, after: float = 0.8, n: int = 1000) -> Verdict:
    """What happened to one retained set."""
    hits = [[i < round(share * n) for i in range(n)] for share in (before, after)]
    return Verdict(Change.of(hits[0], hits[0]), {"pets": Change.of(*hits)})


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


def test_only_a_clear_loss_is_warned_of() -> None:
    assert warnings(outcome(after=0.8 * COLLAPSED), "tracer") == []
    lost, told = warnings(outcome(after=0.8 * COLLAPSED - 0.01), "ft")
    assert lost == "pets fell from 80.0% to 39.0%"
    assert told == advice("ft")
    assert warnings(outcome(before=0.8, after=0.2, n=3), "ft") == [], "three images show nothing"


@pytest.mark.parametrize("method", methods())
def test_only_flags_that_a_method_has_are_recommended(method: str) -> None:
    if "--strength" in advice(method):
        assert "strength" in {option.name for option in options(method)}
    assert "--lr" in advice(method)


def test_advice_fits_the_method() -> None:
    assert "--strength" in advice("tracer")
    assert "--strength" not in advice("ft")
    assert "--strength" not in advice("clipood"), "its strength widens a margin and holds nothing"


@pytest.mark.parametrize("method", methods())
def test_no_lower_rate_is_advised_where_statistics_moved(method: str) -> None:
    told = warnings(outcome(after=0.1), method, statistics_moved=True)[-1]
    assert "--batchnorm keep" in told
    assert "a lower --lr" not in told


def test_agreement_over_names_is_shown_where_it_means_something() -> None:
    interval = wilson_interval(0.8, 100)
    retention = {"agreement": 0.8, "n": 100, "interval": list(interval)}
    assert names_kept({"retention": retention | {"meaningful": True}}) == interval
    assert names_kept({"retention": retention | {"meaningful": False}}) is None
    assert names_kept({}) is None


def test_a_collapse_is_printed_and_a_random_start_has_nothing_to_lose(
    tmp_path: Path,
    some_digits: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measurement, "can_name", lambda hits: True)
    monkeypatch.setattr(summary, "warnings", lambda *_: ["naming emoji fell", advice("flyp")])
    names = measurement.known_names()[:5]
    monkeypatch.setattr(measurement, "known_names", lambda: names)
    monkeypatch.setattr(measurement, "MAX_COMPARED", 40)
    export(load("tiny-28", seed=0), tmp_path / "model")
    small = ["--steps", "1", "--batch", "4", "--device", "cpu", "--templates", "name", "--workers", "0"]
    small += ["--data", str(some_digits), "--held-out", str(some_digits)]
    known = ["--model", str(tmp_path / "model"), "--out", str(tmp_path / "known")]
    assert main(["train", "flyp", *small, *known]) == 0
    printed = capsys.readouterr()
    assert "retention: naming emoji fell" in printed.err
    assert f"retention: {advice('flyp')}" in printed.err
    assert "of 40 of 120 held-out images, evenly spaced, it still picks" in " ".join(printed.out.split())
    measures = measured(read_run(tmp_path / "known"), "after")
    assert Key.of("retention", "agreement") in measures
    assert measures[Key.of("top5")].known
    assert measures[Key.of("macro_f1")].known
    assert "temperature" in read_run(tmp_path / "known").result["after"]
    monkeypatch.setattr(measurement, "MAX_COMPARED", 20)
    monkeypatch.setattr(measurement, "FEWEST_TO_FIT", 121)  # more than are held out
    random = ["--model", "tiny-28", "--pretrained", "none", "--out", str(tmp_path / "random")]
    assert main(["train", "flyp", *small, *random]) == 0
    printed = capsys.readouterr()
    assert "retention" not in printed.err
    assert "ImageNet name" not in printed.out
    random_start = read_run(tmp_path / "random")
    assert Key.of("retention", "agreement") not in measured(random_start, "after")
    assert "temperature" not in random_start.result["after"]


def test_the_built_in_probe_is_shown_only_to_models_that_can_name_emoji() -> None:
    probe = emoji_probe(100_000)
    assert len(probe) == len(set(probe.classes)) == 240
    assert len(emoji_probe(0)) == 60
    assert can_name([True] * 20 + [False] * 220)
    assert not can_name([True] * 3 + [False] * 237)
