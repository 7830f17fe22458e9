"""The statistics of the study on small data, by hand; its page shows its results."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from studies.choices.statistics import (
    Share,
    changed,
    coverage,
    covers,
    rows,
    tables,
    worse_by_more_than_half_width,
    worse_than_stated,
)
from studies.choices.study import Outcome, Stated, covered_by_test_sets

ROOT = Path(__file__).parents[3]
RESULTS = sorted((ROOT / "studies" / "choices" / "results").glob("*.json"))


def stated(truth: float, low: float = -0.1, high: float = 0.1) -> Stated:
    return Stated(low, (low + high) / 2, high, truth)


def outcome(alpha: float, truth: float = 0.0) -> Outcome:
    names = ("pretrained", "finetuned", "merged")
    differences = ("finetuned − pretrained", "merged − pretrained", "merged − finetuned")
    return Outcome(
        data="mnist",
        images=300,
        seed=0,
        held_out=60,
        alpha=alpha,
        told_apart=alpha != 0.5,
        truth=dict(zip(names, (0.5, 0.6, 0.6 + truth), strict=True)),
        clearly_worse=truth < 0,
        accuracies={name: stated(0.05) for name in names},
        differences={name: stated(truth) for name in differences},
        test_sets=10,
        accuracies_covered=9,
        differences_covered=10,
    )


@pytest.mark.parametrize(
    ("truth", "low", "high", "below", "beyond"),
    [
        (-0.05, -0.1, 0.1, False, False),  # worse, and within what was printed
        (-0.15, -0.1, 0.1, True, True),
        (-0.05, 0.0, 0.04, True, True),  # a gain was printed, a loss is true
        (-0.02, 0.01, 0.09, True, False),
        (0.02, 0.05, 0.1, False, False),  # below the interval and yet not worse
        (-0.12, -0.3, -0.1, False, True),  # the loss that was printed
    ],
)
def test_worse_than_stated(truth: float, low: float, high: float, below: bool, beyond: bool) -> None:
    assert worse_than_stated(stated(truth, low, high)) == below
    assert worse_by_more_than_half_width(stated(truth, low, high)) == beyond


def test_ends_belong_to_an_interval() -> None:
    assert [covers(stated(truth)) for truth in (-0.1, 0.0, 0.1, 0.11)] == [True, True, True, False]
    assert coverage(stated(truth) for truth in (0.0, 0.0, 0.2)) == Share(2, 3)


def test_a_model_is_not_compared_with_itself() -> None:
    outcomes = [outcome(1.0), outcome(0.0), outcome(0.5)]
    assert len(changed(outcomes, "merged − finetuned")) == 2
    assert len(changed(outcomes, "merged − pretrained")) == 2
    assert len(changed(outcomes, "finetuned − pretrained")) == 3


def test_a_goal_is_missed_only_beyond_the_noise_of_its_share() -> None:
    assert Share(162, 180).within(0.93, 0.97)  # 90 %, whose interval ends at 93.6 %
    assert not Share(150, 180).within(0.93, 0.97)
    assert not Share(5940, 5940).within(0.93, 0.97)
    assert Share(12, 180).within(0.0, 0.05)
    assert not Share(30, 180).within(0.0, 0.05)


def test_every_rule_has_its_line() -> None:
    lines = {name: (share, goal) for name, share, goal in rows([outcome(0.5, -0.2), outcome(0.8)])}
    share, goal = lines["merged model worse than no merge, below the interval"]
    assert share.endswith("1 of 2")
    assert goal.startswith("at most 5%")
    assert lines["difference on a test set of 300: interval holds the truth"][0].startswith("100.0 %")
    assert len(lines) == 13


def test_small_test_sets_are_judged_by_the_other_images() -> None:
    """Intervals of an exact sampler cover about 95 %: two models that differ on a tenth of 4 000 images."""
    covered = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        before = rng.random(4_000) < 0.6
        hits = {"pretrained": before, "merged": before ^ (rng.random(4_000) < 0.1)}
        covered += covered_by_test_sets(hits, seed)
    assert len(covered) == 20 * 13
    for share in np.mean(covered, axis=0):
        assert 0.9 < share < 0.99


def test_outcomes_are_read_back() -> None:
    whole = outcome(0.3)
    assert Outcome.from_json(json.loads(json.dumps(asdict(whole)))) == whole


@pytest.mark.skipif(not RESULTS, reason="no results are committed")
def test_the_page_shows_the_results() -> None:
    """The tables of the rule in use; `choices.json` was measured with the rule before it."""
    page = (ROOT / "docs" / "choices.md").read_text(encoding="utf-8")
    content = json.loads((RESULTS[0].parent / "optimism.json").read_text())
    assert {"command", "date", "scale"} <= content.keys()
    outcomes = [Outcome.from_json(each) for each in content["outcomes"]]
    assert all(table.strip() in page for table in tables(outcomes).split("\n\n"))
