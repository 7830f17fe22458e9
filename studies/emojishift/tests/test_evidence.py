"""Tables and verdicts from synthetic result files; equal search budgets; no choice on test data."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

from studies.emojishift import compare
from studies.emojishift.checks import (
    Comparison,
    alike,
    all_of,
    at_equal_task,
    better,
    cheap,
    drifting_layers,
    lasting_gap,
    no_worse,
)
from studies.emojishift.claims import CLAIMS
from studies.emojishift.command import main
from studies.emojishift.compare import answers, difference, per_style, seed_error, value, widened
from studies.emojishift.frontiers import frontiers
from studies.emojishift.further_claims import FURTHER_CLAIMS
from studies.emojishift.measure import packed_bits, packed_shares, unpacked_bits, unpacked_shares
from studies.emojishift.page import (
    edges,
    overview,
    page,
    percent,
    sentence,
    setting,
    studies_page,
    verdict_table,
)
from studies.emojishift.rows import Row, command, corrupted_shifts, ids, read, write
from studies.emojishift.runner import Workspace, _trials, best, run_studies
from studies.emojishift.study import (
    CHOSEN_ON,
    MAIN,
    SCALES,
    Arm,
    Setting,
    Study,
    Trial,
    job,
    searches,
    studies,
    variants,
)
from studies.emojishift.verdict import Claim, claim_comparisons, grouped, verdict
from tracer.cli.commands.train import requested
from tracer.core.errors import UserError
from tracer.core.metrics import Interval, accuracy, ece
from tracer.data.embedded.emojishift import FOLDS, emoji_kinds, styles
from tracer.evaluation.suites.corruptions import KINDS as CORRUPTIONS
from tracer.evaluation.suites.emojishift import NAMES

PUBLISHED = Path(__file__).parents[1] / "results" / "part.json"
ADAPTERS = PUBLISHED.with_name("adapters.json")
DOCS = Path(__file__).parents[3] / "docs"
SHIFTS = (*styles(), *corrupted_shifts("twemoji"), NAMES)
Right = Callable[[str, np.random.Generator, int], np.ndarray]


def synthetic(
    arm: str, right: Right, *, fold: int = 0, seed: int = 0, sure: float = 0.5, **changed: Any
) -> Row:
    """A row whose answers `right` decides, all with one confidence."""
    rng = np.random.default_rng([fold, seed, *arm.encode()])
    scores = {}
    for shift in SHIFTS:
        count = len(ids(shift, fold))
        scores[shift] = {"n": count, "right": packed_bits(right(shift, rng, count))}
        if shift in styles():
            scores[shift]["sure"] = packed_shares(np.full(count, sure))
    row = Row(
        study="main",
        arm=arm,
        role="test",
        style="twemoji",
        fold=fold,
        seed=seed,
        rate=3e-4,
        run=f"{arm}-{fold}",
        command="tracer train …",
        validation=0.5,
        cpu_seconds=10.0,
        gap={"step": [1, 2], "kl": [1.0, 0.5], "weight_step": [2], "weight_gap": [1.0]},
        layers={"block 1": 0.9, "block 2": 0.8, "projection": 0.7},
        scores={"1": scores, "0.5": scores},
    )
    return row._replace(**changed)


def share(chance: float) -> Right:
    return lambda shift, rng, count: rng.random(count) < chance


ALL: Right = lambda shift, rng, count: np.ones(count, bool)  # noqa: E731
NONE: Right = lambda shift, rng, count: np.zeros(count, bool)  # noqa: E731


def three(arm: str, right: Right, **changed: Any) -> list[Row]:
    return [synthetic(arm, right, fold=fold, seed=fold, **changed) for fold in range(3)]


def test_packed_values_are_read_back() -> None:
    bits = np.random.default_rng(0).random(271) < 0.3
    assert np.array_equal(unpacked_bits(packed_bits(bits), 271), bits)
    shares = np.array([0.0, 0.25, 1.0])
    assert np.allclose(unpacked_shares(packed_shares(shares)), shares, atol=1 / 65535)


def test_a_value_is_the_mean_over_test_sets_of_their_means() -> None:
    rows = three("A", lambda shift, rng, count: np.full(count, shift in ("noto", "fxemoji")))
    assert value(rows, "ood").value == pytest.approx(2 / 11)
    assert value(rows, "id").value == 0
    assert value(rows, "retention").value == 0
    assert per_style(rows)["noto"] == 1


def test_folds_of_different_size_are_pooled_picture_by_picture() -> None:
    rows = [synthetic("A", ALL, fold=0), synthetic("A", NONE, fold=1)]
    sizes = [len(emoji_kinds("twemoji", fold, "test")) for fold in (0, 1)]
    assert value(rows, "id").value == pytest.approx(sizes[0] / sum(sizes))


def test_the_interval_of_an_accuracy_is_the_binomial_one() -> None:
    rows = three("A", share(0.4))
    interval = value(rows, "id")
    count = len(answers(rows, "id")["twemoji"].right)
    width = 1.96 * np.sqrt(interval.value * (1 - interval.value) / count)
    assert interval.high - interval.value == pytest.approx(width, rel=0.15)


def test_pairing_cancels_what_two_arms_share() -> None:
    one = three("A", share(0.4))
    same = [row._replace(arm="B") for row in one]
    assert difference(one, same, "ood") == Interval(0, 0, 0)
    assert difference(one, three("B", share(0.4)), "ood").excludes_zero is False
    assert difference(three("A", share(0.6)), three("B", share(0.4)), "ood").low > 0


def test_arms_of_different_folds_are_not_compared() -> None:
    with pytest.raises(ValueError, match="same folds"):
        difference(three("A", ALL), [synthetic("B", ALL, fold=4)], "id")


def test_calibration_is_the_metric_s_own() -> None:
    import torch

    rows = three("A", share(0.4), sure=0.7)
    right = torch.from_numpy(answers(rows, "ece id")["twemoji"].right)
    logits = torch.zeros(len(right), 2)
    logits[:, 0] = np.log(0.7 / 0.3)
    label = (~right).long()
    assert accuracy(logits, label) == pytest.approx(right.float().mean().item())
    assert value(rows, "ece id").value == pytest.approx(ece(logits, label), abs=1e-4)


def test_calibration_is_binned_and_several_sets_are_mixed_evenly() -> None:
    """By definition, bin by bin: over the mixture in which each set counts the same."""
    rng = np.random.default_rng(0)
    rows = three("A", share(0.4))
    for row in rows:
        for shift in styles():
            held = row.scores["1"][shift]
            held["sure"] = packed_shares(rng.random(held["n"]))
    for measure in ("ece id", "ece ood"):
        by_set = answers(rows, measure)
        gaps = []
        for low in np.arange(15) / 15:
            inside = {name: (each.sure >= low) & (each.sure < low + 1 / 15) for name, each in by_set.items()}
            gaps.append(np.mean([np.mean((e.sure - e.right) * inside[name]) for name, e in by_set.items()]))
        assert value(rows, measure).value == pytest.approx(np.abs(gaps).sum(), abs=1e-6)


def test_a_second_seed_with_the_same_answers_leaves_the_interval() -> None:
    """Two seeds that answer alike: the interval is that of one, since emoji are drawn and not pictures."""
    once = [synthetic("A", share(0.4), fold=0)]
    twice = [*once, once[0]._replace(seed=1)]
    for measure in ("id", "ood", "retention"):
        assert value(twice, measure) == pytest.approx(value(once, measure), abs=1e-12)


def test_intervals_are_basic_ones() -> None:
    """A score whose resamples lie above it was too low, and its interval reaches further down."""
    draws = np.linspace(0.5, 0.7, 1001)
    interval = compare._interval(np.concatenate([[0.55], draws]))
    assert interval == pytest.approx(Interval(1.1 - 0.695, 0.55, 1.1 - 0.505))


def test_layers_that_drift_more_towards_the_end_speak_for_the_claim() -> None:
    direct = three("direct FT", ALL, layers={"block 1": 0.9, "block 2": 0.5, "projection": 0.7})
    held = three("TRACER", ALL, layers={"block 1": 0.9, "block 2": 0.8, "projection": 0.7})
    deeper, preserved = drifting_layers("direct FT", "TRACER")({"direct FT": direct, "TRACER": held})
    assert (deeper.interval.value, preserved.interval.value) == (pytest.approx(0.4), pytest.approx(0.3))


def test_arms_that_surely_differ_speak_against_being_alike() -> None:
    arms = {"all": three("all", ALL), "half": three("half", share(0.5))}
    (part,) = alike("id", "all", "half")(arms)
    assert part.speaks == "against"


def test_verdicts_follow_from_intervals() -> None:
    above, across = Comparison("", Interval(0.1, 0.2, 0.3)), Comparison("", Interval(-0.1, 0.2, 0.3))
    below, met = (
        Comparison("", Interval(-0.3, -0.2, -0.1)),
        Comparison("", Interval(0.1, 0.2, 0.3), condition=True),
    )
    unmet = across._replace(condition=True)
    assert verdict([above, above, met]) == "holds"
    assert verdict([above, across]) == verdict([above, unmet]) == "holds partly"
    assert verdict([above, below, across]) == "holds partly, and partly the opposite"
    assert verdict([across]) == verdict([met, across]) == "not seen here"
    assert verdict([met, below]) == verdict([across, below]) == "not seen here: the opposite"
    assert verdict([above, below], best=True) == "not seen here: another is better"
    assert verdict([above, across], best=True) == "holds partly"
    assert verdict([]) == "not tested yet"


def test_a_claim_without_its_runs_has_no_verdict() -> None:
    claim = Claim("A is better", "main", ("A", "B"), better("ood", "A", "B"))
    assert claim_comparisons(claim, grouped(three("A", ALL))) == []
    assert claim_comparisons(claim, grouped(three("A", ALL) + three("B", NONE)[:2])) == []
    six = three("A", ALL) + [synthetic("A", ALL, fold=fold, seed=fold + 3) for fold in range(3)]
    # Runs of B were refused: what is left cannot be paired.
    assert claim_comparisons(claim, grouped(six + three("B", NONE))) == []
    (part,) = claim_comparisons(claim, grouped(three("A", ALL) + three("B", NONE)))
    assert part.interval.value == 1


def test_less_calibration_error_is_better() -> None:
    arms = grouped(three("A", share(0.5), sure=0.5) + three("B", share(0.5), sure=0.9))["main"]
    (part,) = better("ece ood", "A", "B")(arms)
    assert part.interval.low > 0


def test_checks_of_gaps_times_and_equality() -> None:
    arms = grouped(
        three("A", share(0.5))
        + three("B", share(0.5), cpu_seconds=20.0, gap={"step": [1, 2], "kl": [1.0, 0.1]})
    )["main"]
    lasts, fades = lasting_gap("A", "B", floor=0.2)(arms)
    assert (lasts.interval.value, fades.interval.value) == (pytest.approx(0.3), pytest.approx(0.1))
    assert {lasts.bootstrapped, fades.bootstrapped} == {False}
    (time,) = cheap("B", "A", 1.5)(arms)
    assert time.interval.value == pytest.approx(-0.5)
    (untimed,) = cheap("A", "B", 9.0)({**arms, "B": three("B", ALL, cpu_seconds=None)})
    assert untimed.speaks == "neither"
    (same,) = alike("ood", "A", "A")(arms)
    assert same.interval.low == pytest.approx(0.01)
    assert len(all_of(better("id", "A", "B"), better("ood", "A", "B"))(arms)) == 2


def test_a_comparison_is_shown_with_its_interval() -> None:
    assert (
        sentence(Comparison("ood: A − B", Interval(0.001, 0.027, 0.04))) == "✓ ood: A − B: +2.7 [+0.1, +4.0]"
    )
    text = sentence(Comparison("time", Interval(0.1, 0.2, 0.3), percent=False, bootstrapped=False))
    assert text == "✓ time: +0.20 [+0.10, +0.30] (range over runs)"
    assert sentence(Comparison("a", Interval(-0.3, -0.2, -0.1))).startswith("✗ ")
    assert sentence(Comparison("a", Interval(-0.3, -0.2, 0.1))).startswith("· ")


def test_result_files_come_back_and_make_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "DRAWS", 20)
    rows = [row for arm in MAIN for row in three(arm.name, share(0.4))]
    rows.append(synthetic("FLYP", ALL, fold=3, role="search", scores={}, gap={}, layers={}))
    write(tmp_path / "results.json", rows, "tracer evidence quick")
    head, back = read(tmp_path / "results.json")
    assert back == rows
    assert head["command"] == "tracer evidence quick"
    text, tables = page(head, back, "x-studies.md"), studies_page(head, back, "x.md")
    assert "](x-studies.md)" in text
    assert "](x.md)" in tables
    for arm in MAIN:
        assert f"| {arm.name} |" in tables
        assert f"`{arm.name}-0`" in tables
    claims = (*CLAIMS, *FURTHER_CLAIMS)
    untested = sum(claim.study != "main" for claim in claims)
    assert verdict_table(grouped(back), claims).count("not tested yet") == untested
    assert tables.count("not tested yet") == untested
    assert text.count("not tested yet") == untested + 1  # and the words are explained


def test_a_file_without_results_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(UserError, match="not a result file"):
        read(tmp_path / "x.json")


def test_every_arm_has_the_same_number_of_tries() -> None:
    for scale in SCALES:
        for study in studies(scale):
            tried: dict[tuple[str, int], set[str]] = {}
            for each in searches(study, "models"):
                tried.setdefault((each.arm, each.trial.fold), set()).add(each.experiment.id)
            assert len({len(runs) for runs in tried.values()}) <= 1
            searching = {
                arm.name
                for arm in study.arms
                if arm.trains and arm.rate is None and len(study.settings(arm)) > 1
            }
            assert {name for name, _ in tried} == searching


def test_arms_choose_from_one_list_of_rates_unless_they_have_no_strength_to_choose() -> None:
    for study in (each for scale in SCALES for each in studies(scale)):
        for arm in (each for each in study.arms if len(study.settings(each)) > 1):
            rates = {each.rate for each in study.settings(arm)}
            assert rates == set(study.rates) or (set(study.rates) < rates and arm.strengths == (None,))
            assert (min(rates), max(rates)) == (min(study.rates), max(study.rates))


def test_rates_are_never_chosen_on_emoji_that_are_tested() -> None:
    for fold in range(FOLDS):
        chooses = set(emoji_kinds("twemoji", CHOSEN_ON[fold], "val").ids)
        assert chooses.isdisjoint(emoji_kinds("twemoji", fold, "test").ids)


def test_borrowed_rates_come_from_arms_of_the_same_study() -> None:
    for study in (each for scale in SCALES for each in studies(scale)):
        names = [arm.name for arm in study.arms]
        assert len(names) == len(set(names))
        assert all(arm.rate is None or arm.rate in names for arm in study.arms)


def test_claims_name_arms_that_exist() -> None:
    for scale in ("part", "full"):
        arms = {study.name: {arm.name for arm in study.arms} for study in studies(scale)}
        for claim in (*CLAIMS, *FURTHER_CLAIMS):
            assert set(claim.needs) <= arms[claim.study]


def test_a_rate_is_the_arm_s_own_or_that_of_the_arm_it_varies() -> None:
    borrower = Arm("B", "tracer", {"beta": 1.0}, rate="A")
    study = Study("main", (Arm("A", "tracer"), borrower), trials=(Trial(0, 0), Trial(3, 3)))
    low, high = Setting(1e-4), Setting(3e-4)
    accuracies = {("A", 3): {low: 0.1, high: 0.3}, ("A", 4): {low: 0.3, high: 0.1}}
    for arm in study.arms:
        assert [each.experiment.lr for each in _trials(study, arm, accuracies, "models")] == [3e-4, 1e-4]


def test_results_that_lack_a_test_set_are_refused(tmp_path: Path) -> None:
    row = synthetic("A", ALL)
    del row.scores["0.5"]["noto"]
    write(tmp_path / "old.json", [row], "tracer evidence quick")
    with pytest.raises(UserError, match="A-0 was not measured on noto"):
        read(tmp_path / "old.json")


def test_the_page_says_who_took_the_rate_of_another_and_which_commit_it_was() -> None:
    rows = [*three("A", ALL), *three("B", ALL), synthetic("A", ALL, role="search")]
    head = {"command": "c", "date": "d", "versions": {"torch": "2"}, "commit": "0" * 40}
    text = studies_page(head, rows, "x.md")
    table = {line.split(" | ")[0]: line.split(" | ") for line in text.splitlines() if "100.0 [" in line}
    assert (table["| A"][-2], table["| B"][-2]) == ("0.0003", "0.0003°")
    assert "commit `0000000000`" in text


def test_a_mixture_is_shown_where_all_runs_of_an_arm_have_it() -> None:
    rows = three("A", ALL)
    assert "A, α = 0.5" in overview({"A": rows}, ())
    del rows[1].scores["0.5"]
    assert "α" not in overview({"A": rows}, ())


def test_ties_go_to_the_lowest_rate_and_the_largest_strength() -> None:
    assert best({Setting(1e-4): 0.5, Setting(3e-4): 0.5, Setting(1e-3): 0.4}) == Setting(1e-4)
    assert best({Setting(1e-4, 0.1): 0.5, Setting(1e-4, 10.0): 0.5}) == Setting(1e-4, 10.0)
    assert best({Setting(1e-4, 10.0): 0.5, Setting(1e-3, 0.1): 0.6}) == Setting(1e-3, 0.1)


def test_a_chosen_strength_is_trained_with_and_shown() -> None:
    arm = Arm("A", "tracer", strengths=(None, 10.0))
    study = Study("main", (arm,), trials=(Trial(0, 0),))
    accuracies = {("A", 3): {Setting(1e-4): 0.1, Setting(3e-4, 10.0): 0.3}}
    (trial,) = _trials(study, arm, accuracies, "models")
    assert trial.experiment.options == {"strength": 10.0}
    assert job(study, arm, Trial(0, 0), Setting(1e-4), "models").experiment.options == {}
    assert setting(synthetic("A", ALL, rate=3e-4, strength=10.0)) == "0.0003 at λ = 10"
    assert setting(synthetic("A", ALL, rate=3e-4)) == "0.0003"


def test_the_interval_includes_the_error_over_seeds() -> None:
    """Scores 0 and 1 on each of two folds: the variance of a run is 1/2, that of the mean of four runs 1/8."""
    assert seed_error([(0, 0.0), (0, 1.0), (1, 0.0), (1, 1.0)]) == (pytest.approx(math.sqrt(1 / 8)), 2)
    assert seed_error([(0, 0.0), (1, 1.0)]) == (0, 0)
    assert widened(Interval(-3.0, 0.0, 4.0), 0.0, 0) == Interval(-3.0, 0.0, 4.0)
    alone = widened(Interval(0.0, 0.0, 0.0), 1.0, 3)  # seeds are all there is: Student's t of three
    assert alone == pytest.approx((-t.ppf(0.975, 3), 0.0, t.ppf(0.975, 3)))
    many = widened(Interval(-3.0, 0.0, 4.0), 4 / 1.96, 10**6)  # as many seeds as one likes: two normal errors
    assert many == pytest.approx(Interval(-5.0, 0.0, 4 * math.sqrt(2)), rel=1e-3)
    steady = [synthetic("A", share(0.4), fold=0, seed=0), synthetic("A", share(0.4), fold=0, seed=1)]
    unsteady = [synthetic("A", ALL, fold=0, seed=0), synthetic("A", NONE, fold=0, seed=1)]
    assert (value(unsteady, "id").low, value(unsteady, "id").high) == (0, 1)
    assert value(steady, "id").low > 0.3
    both = difference(unsteady, [row._replace(arm="B") for row in unsteady], "id")
    assert both == Interval(0, 0, 0)


@pytest.mark.parametrize("emoji", [0.0, 0.01, 0.05])
def test_nineteen_of_twenty_intervals_hold_the_truth(emoji: float) -> None:
    """Two seeds for each of three folds, which differ; beside an error over emoji of any size."""
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(4000):
        runs = 0.4 + rng.normal(0, 0.03, 6) + np.repeat([0.0, 0.1, 0.2], 2)
        score, half = runs.mean() + rng.normal(0, emoji), 1.96 * emoji
        interval = Interval(score - half, score, score + half)
        low, _, high = widened(interval, *seed_error(list(zip((0, 0, 1, 1, 2, 2), runs, strict=True))))
        held += low < 0.5 < high
    assert held / 4000 == pytest.approx(0.95, abs=0.015)


def test_the_command_of_a_row_repeats_the_experiment() -> None:
    study = Study("main", MAIN)
    arm = next(arm for arm in MAIN if arm.name == "TRACER")
    changed = next(each for each in variants() if each.name == "TRACER every 5, released clock")
    jobs = [job(study, each, study.trials[1], Setting(3e-4, 10.0), "models") for each in (arm, changed)]
    for each in (*(one.experiment for one in jobs), *study.pretrainings().values()):
        program, verb, *words = shlex.split(command(each.to_json()))
        assert (program, verb) == ("tracer", "train")
        again, machine = requested(words)
        assert again.id == each.id
        assert machine.device == "cpu"


def test_no_worse_allows_the_margin_and_no_more() -> None:
    arms = {"all": three("all", ALL), "most": three("most", share(0.95)), "half": three("half", share(0.5))}
    assert verdict(no_worse("id", "all", "half")(arms)) == "holds"
    assert verdict(no_worse("id", "all", "all")(arms)) == "holds"
    assert verdict(no_worse("id", "most", "all")(arms)) == "not seen here: the opposite"


def test_arms_are_compared_at_the_task_accuracy_that_is_nearest() -> None:
    arms = {"A": three("A", share(0.5)), "near": three("near", share(0.52)), "far": three("far", ALL)}
    labels = [part.label for part in at_equal_task("A", ("near", "far"), "ood", "retention")(arms)]
    assert labels[1:] == ["ood: A − near", "retention: A − near"]
    alone = at_equal_task("A", ("far",), "ood")(arms)
    assert alone[0].condition
    assert alone[0].speaks == "against"  # what is nearest is not near


def test_a_rate_at_the_edge_of_those_tried_is_reported() -> None:
    tried = [
        synthetic(arm, ALL, role="search", rate=rate, strength=strength)
        for arm, strength in (("low", None), ("middle", 2.0), ("middle", 3.0))
        for rate in (1e-4, 3e-4, 1e-3)
    ]
    chosen = [synthetic("low", ALL, rate=1e-4), synthetic("middle", ALL, rate=3e-4)]
    text = edges([*tried, *chosen], "main")
    assert "the lowest rate tried (0.0001) was chosen by low." in text
    assert "middle" not in text
    other = synthetic("middle", ALL, rate=1e-4, fold=1)
    assert "chosen by low, middle." in edges([*tried, other, *chosen], "main")
    assert edges(chosen, "main") == ""
    stiff = synthetic("middle", ALL, rate=3e-4, strength=3.0)
    assert "the highest λ tried (3) was chosen by middle." in edges([*tried, stiff], "main")


def test_the_figure_has_every_arm_and_every_strength_where_it_was_measured() -> None:
    main = {"zero-shot": three("zero-shot", share(0.3)), "TRACER": three("TRACER", share(0.6))}
    strengths = {"TRACER": main["TRACER"], "TRACER λ=10": three("TRACER λ=10", ALL)}
    figure = frontiers({"main": main, "strengths": strengths})
    assert all(axes.get_xlabel() and axes.get_ylabel() and axes.get_title() for axes in figure.axes)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["TRACER", "zero-shot"]
    lower = figure.axes[2]
    assert [each.get_text() for each in lower.texts] == ["0.9", "10"]
    assert np.asarray(lower.lines[0].get_xydata())[-1] == pytest.approx([100, 100])


def test_corruptions_are_kinds_of_one_style_and_no_part_of_the_shift_to_others() -> None:
    names = corrupted_shifts("noto")
    assert len(names) == len(CORRUPTIONS)
    assert all(name.startswith("noto ") for name in names)
    assert ids(names[0], 2) == ids("noto", 2)
    rows = three("A", lambda shift, rng, count: np.full(count, shift == "twemoji jpeg 3"))
    assert value(rows, "corrupted").value == pytest.approx(1 / len(CORRUPTIONS))
    assert value(rows, "id").value == value(rows, "ood").value == 0


def test_earlier_rows_are_kept_and_are_those_that_the_study_defines(tmp_path: Path) -> None:
    """With all rows known nothing is run: the published file holds every run of the study, in its order."""
    rows = read(PUBLISHED)[1]
    *_, again = run_studies(studies("part"), Workspace(tmp_path), lambda message: None, rows)
    assert again == rows
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_has_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scale: str) -> None:
    """The figure shows some studies only; a scale without them has tables and no figure."""
    monkeypatch.setattr(compare, "DRAWS", 20)
    first = studies(scale)[0]
    rows = [
        synthetic(arm.name, lambda shift, rng, count: rng.random(count) < 0.5, study=first.name)
        for arm in first.arms
    ]
    write(tmp_path / "r.json", rows, "tracer evidence")
    assert main([scale, "--results", str(tmp_path / "r.json"), "--redraw"]) == 0
    assert (tmp_path / "r-studies.md").exists()


def test_the_page_on_cheaper_teachers_has_the_figures_of_its_result_file() -> None:
    page = (DOCS / "memory-and-speed.md").read_text()
    arms = grouped(read(ADAPTERS.with_name("teachers.json"))[1])["teachers"]
    for name, arm in arms.items():
        for measure in ("id", "ood", "retention"):
            low, middle, high = (
                f"{100 * each:+.1f}".replace("-", "−") for each in difference(arm, arms["TRACER"], measure)
            )
            assert name == "TRACER" or f"{middle} [{low}, {high}]".replace("−0.0 [", "0.0 [") in page, (
                name,
                measure,
            )


def test_the_page_on_adapters_has_the_figures_of_its_result_file() -> None:
    page = (DOCS / "adapters.md").read_text()
    for name, arm in grouped(read(ADAPTERS)[1])["adapters"].items():
        shown = " | ".join(percent(value(arm, measure)) for measure in ("id", "ood", "retention"))
        assert f"| {shown} |" in page, f"{name}: {shown}"
