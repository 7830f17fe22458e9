"""The rules of `tracer fit`, on tables of answers made by hand and on synthetic ones whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from tracer.core.metrics.intervals import NORMAL_QUANTILE, ratio_bound
from tracer.fitting.choice import Point, area, choose, promoted, within


def hits(count: int, n: int) -> list[bool]:
    return [i < count for i in range(n)]


def point(trial: str, alpha: float, right: int, kept: int, n: int = 200, m: int = 1000) -> Point:
    return Point(trial, alpha, hits(right, n), {"names": hits(kept, m)})


BEFORE = point("pretrained", 0.0, 100, 800)


def test_the_interval_of_a_share_kept_is_that_of_the_data_that_lost_most() -> None:
    interval = point("a", 1.0, 160, 760).retention_interval(BEFORE)
    assert interval.value == 0.95
    assert interval.low == pytest.approx(ratio_bound(hits(800, 1000), hits(760, 1000), NORMAL_QUANTILE))
    assert 0.93 < interval.low < 0.95 < interval.high < 0.97
    two = {"names": hits(800, 1000), "few": hits(20, 20)}
    lost = Point("a", 1.0, [True], {"names": hits(800, 1000), "few": hits(10, 20)})
    assert lost.retention_interval(Point("pretrained", 0.0, [True], two)).value == 0.5
    assert BEFORE.retention_interval(BEFORE).high == 1.0


def test_without_keep_the_one_that_keeps_most_within_one_standard_error_of_the_best() -> None:
    """Of 200 images, the best has 160; 159 are within one standard error of it (0.9 %), 150 are not."""
    points = [
        point("a", 1.0, 160, 300),
        point("a", 0.6, 159, 600),
        point("b", 1.0, 150, 790),
        point("c", 1.0, 100, 800),
    ]
    choice = choose(BEFORE, points)
    assert (choice.point.trial, choice.point.alpha) == ("a", 0.6)
    assert "one standard error" in choice.reason


def test_with_keep_the_most_accurate_that_is_sure_to_keep_it() -> None:
    points = [
        point("a", 1.0, 160, 300),
        point("b", 0.5, 140, 798),
        point("b", 1.0, 150, 780),
        point("c", 1.0, 130, 800),
    ]
    assert choose(BEFORE, points, 0.95).point.accuracy == 150 / 200
    assert choose(BEFORE, points, 0.97).point.accuracy == 140 / 200  # 780 / 800 = 0.975, but not for sure
    assert choose(BEFORE, points, 0.3).point.accuracy == 160 / 200


def test_what_is_not_better_beyond_noise_leaves_the_pretrained_model() -> None:
    almost = [point("a", 1.0, 101, 790), point("b", 1.0, 90, 800)]
    assert choose(BEFORE, almost).point is BEFORE
    assert "beyond noise" in choose(BEFORE, almost).reason
    forgetful = [point("a", 1.0, 180, 100)]
    assert choose(BEFORE, forgetful, 0.9).point is BEFORE
    assert "sure to keep 0.9" in choose(BEFORE, forgetful, 0.9).reason
    assert choose(BEFORE, []).point is BEFORE


def test_a_path_ends_at_its_first_mixture_that_may_keep_too_little() -> None:
    """That a later one looks safe again is luck: it is not tested."""
    path = [
        point("a", 0.2, 120, 798),
        point("a", 0.4, 130, 500),
        point("a", 1.0, 150, 799),
    ]
    assert [each.alpha for each in within(BEFORE, path, 0.9)] == [0.2]


def test_a_head_on_unchanged_towers_is_sure_to_keep_all() -> None:
    """Ten retained images prove nothing about other trials, and their number does not count against it."""
    before = Point("pretrained", 0.0, hits(100, 200), {"names": hits(10, 10)})
    probe = Point("probe", 1.0, hits(150, 200), {"names": hits(10, 10)}, frozen=True)
    others = [Point(str(n), 1.0, hits(180, 200), {"names": hits(10, 10)}) for n in range(20)]
    assert choose(before, [probe, *others], 0.97).point is probe
    assert choose(before, others, 0.97).point is before


def test_more_right_answers_than_before_are_luck_and_unchanged_towers_keep_all() -> None:
    """A mixture names 2 % more of the retained images, after losing some; the probe answers none of them otherwise."""
    names = hits(172, 200)
    before = Point("pretrained", 0.0, hits(40, 148), {"names": names})
    changed = [False] * 4 + hits(168, 168) + hits(7, 28)
    tuned = Point("tuned", 0.5, hits(148, 148), {"names": changed})
    probe = [
        Point("probe", alpha, hits(right, 148), {"names": names}, frozen=True)
        for alpha, right in ((0.5, 148), (1.0, 148))
    ]
    assert tuned.retention(before) == 1.0
    assert choose(before, [tuned, *probe]).point is probe[1]  # nothing is to be had from mixing it
    assert choose(before, [tuned]).point is tuned


def test_of_mixtures_that_are_as_good_the_one_nearest_to_the_pretrained_model() -> None:
    path = [point("a", alpha, 150, 800) for alpha in (0.5, 0.75, 1.0)]
    assert choose(BEFORE, path).point.alpha == choose(BEFORE, path, 0.95).point.alpha == 0.5


def test_the_best_of_many_trials_is_rarely_better_by_luck_alone() -> None:
    """Twenty models that answer like the pretrained one but for chance: it is left in at most one search of twenty."""
    rng = np.random.default_rng(0)
    searches, images, left = 200, 150, 0
    for _ in range(searches):
        rows = (rng.random((21, images)) < 0.5).tolist()
        before, *points = (Point(str(n), 1.0, row, {"names": [True] * 9}) for n, row in enumerate(rows))
        left += choose(before, points).point is not before
    assert left <= 0.07 * searches  # 5 %, and chance


def test_the_lowest_of_several_retained_sets_counts() -> None:
    both = {"names": hits(800, 1000), "others": hits(400, 1000)}
    before = Point("pretrained", 0.0, hits(100, 200), both)
    after = Point("a", 1.0, hits(150, 200), {**both, "others": hits(200, 1000)})
    assert after.retention(before) == 0.5
    assert after.retention_bound(before, 1.96) == ratio_bound(hits(400, 1000), hits(200, 1000), 1.96)


def test_the_bound_solves_its_equation() -> None:
    """At the bound, the mean of after − r · before is z standard errors above 0, counted image by image."""
    before, after = hits(60, 100), [*hits(48, 60), *hits(5, 40)]
    z = 1.645
    r = ratio_bound(before, after, z)
    pairs = [*zip(before, after, strict=True), (True, False), (False, True)]
    values = np.array([a - r * b for b, a in pairs])
    assert values.mean() == pytest.approx(z * values.std() / math.sqrt(len(values)), abs=1e-6)
    assert r < sum(after) / sum(before)


def test_a_promise_is_kept_in_19_of_20_searches() -> None:
    """Twenty trials whose retention falls along the path while accuracy rises: the chosen one keeps what was asked for.

    Accuracy rewards forgetting, so the rule is always tempted by points that only look safe.
    """
    rng = np.random.default_rng(0)
    searches, images, keep, trials = 40, 600, 0.95, 20
    alphas, broken, gained = (0.2, 0.4, 0.6, 0.8, 1.0), 0, 0
    for _ in range(searches):
        knew = rng.random(images) < 0.8
        before = Point("pretrained", 0.0, hits(100, 400), {"names": knew.tolist()})
        truth, points = {}, []
        for trial in range(trials):
            loss = rng.uniform(0.02, 0.4)
            resistance = rng.random(images)  # an image is lost at the first α that exceeds it
            for alpha in alphas:
                kept = knew & (resistance > loss * alpha)
                right = min(400, 100 + round(250 * alpha * loss + 60 * alpha))
                points.append(Point(str(trial), alpha, hits(right, 400), {"names": kept.tolist()}))
                truth[str(trial), alpha] = 1 - loss * alpha
        chosen = choose(before, points, keep).point
        broken += chosen is not before and truth[chosen.trial, chosen.alpha] < keep
        gained += chosen is not before
    assert broken <= 0.05 * searches
    assert gained > 0.9 * searches


def test_area_is_that_of_the_union_of_rectangles() -> None:
    points = [(0.2, 0.9), (0.5, 0.5), (0.4, 0.4), (0.6, 0.1), (-0.1, 1.0)]
    grid = np.linspace(0, 1, 401)[1:] - 1 / 800
    x, y = np.meshgrid(grid, grid)
    covered = np.zeros_like(x, bool)
    for a, b in points:
        covered |= (x <= a) & (y <= b)
    assert area(points) == pytest.approx(covered.mean(), abs=0.005)
    assert area([]) == 0


def test_the_most_accurate_goes_on_and_then_what_adds_most() -> None:
    paths: dict[str, Sequence[Point]] = {
        "forgets": [point("forgets", 1.0, 180, 40)],
        "copy": [point("copy", 1.0, 178, 40)],
        "keeps": [point("keeps", 1.0, 150, 760)],
        "nothing": [point("nothing", 1.0, 100, 800)],
    }
    assert promoted(BEFORE, paths, 2) == ["forgets", "keeps"]
    assert promoted(BEFORE, paths, 1, keep=0.9) == ["keeps"]
    within_front = {**paths, "between": [point("between", 1.0, 140, 700)]}
    # It adds nothing either, but has an area of its own.
    assert promoted(BEFORE, {"nothing": paths["nothing"], **within_front}, 3)[2] == "between"
    assert set(promoted(BEFORE, paths, 9)) == set(paths)
