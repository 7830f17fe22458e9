"""Only what is comparable is compared, and only seeds are averaged."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from scipy import stats
from written import write_run

from tracer.core.metrics import t_interval, wilson_interval
from tracer.report.comparison import Group, compare
from tracer.report.frontier import frontier
from tracer.report.headline import headline
from tracer.report.measures import Key, measured
from tracer.report.page import write_report
from tracer.report.representation import representation
from tracer.report.run_data import read_run

TASK, DIGITS = Key.of("accuracy"), Key.of("retain", "digits")


def compared(*folders: Path) -> list[Group]:
    return compare([read_run(folder) for folder in folders])


def test_seeds_are_averaged_with_students_interval(tmp_path: Path) -> None:
    scores = [0.90, 0.92, 0.97]
    runs = [write_run(tmp_path / str(i), seed=i, accuracy=(0.5, score)) for i, score in enumerate(scores)]
    ((group,),) = [compared(*runs)]
    (setting,) = group.settings
    found = setting.estimate(TASK)
    assert found is not None
    low, high = stats.t.interval(0.95, 2, loc=sum(scores) / 3, scale=stats.sem(scores))
    assert found.value == pytest.approx(sum(scores) / 3, abs=1e-12)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    assert setting.seeds(TASK) == 3


def test_one_seed_has_an_interval_over_samples_only_where_their_number_is_known(tmp_path: Path) -> None:
    values = measured(read_run(write_run(tmp_path / "a")), "after")
    assert values[TASK] == wilson_interval(0.9, 50)
    assert not values[DIGITS].known


def test_the_same_experiment_twice_counts_once(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, accuracy=(0.5, score)) for name, score in (("a", 0.8), ("b", 0.9))]
    (group,) = compared(*runs)
    (setting,) = group.settings
    assert len(setting.runs) == 1
    assert group.notes == ("a and b are the same experiment with the same seed: counted once.",)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"fingerprint": "cccc"}, "other training data"),
        ({"classes": ("red", "blue", "green")}, r"other classes (3 against 2)"),
    ],
)
def test_other_data_or_classes_are_shown_apart(tmp_path: Path, other: dict, why: str) -> None:
    runs = [
        write_run(tmp_path / "a"),
        write_run(tmp_path / "b", seed=1),
        write_run(tmp_path / "c", seed=2, **other),
    ]
    first, second = compared(*runs)
    assert [run.name for run in first.runs] == ["a", "b"]
    assert [run.name for run in second.runs] == ["c"]
    assert why in second.notes[0]
    slots = [setting.slot for group in (first, second) for setting in group.settings]
    assert len(set(slots)) == len(slots)


def test_runs_without_a_fingerprint_are_never_averaged(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / str(seed), seed=seed) for seed in (0, 1)]
    for folder in folders:
        described = json.loads((folder / "experiment.json").read_text())
        del described["data"]
        (folder / "experiment.json").write_text(json.dumps(described))
    assert [len(group.runs) for group in compared(*folders)] == [1, 1]


def test_labels_say_only_what_differs(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a", options={"beta": 0.2}),
        write_run(tmp_path / "b", options={"beta": 0.7}),
    ]
    runs.append(write_run(tmp_path / "c", method="flyp"))
    (group,) = compared(*runs)
    assert [setting.label for setting in group.settings] == ["TRACER · beta 0.2", "TRACER · beta 0.7", "FLYP"]


def test_settings_stand_in_the_order_of_their_values_whatever_their_folders_are_called(
    tmp_path: Path,
) -> None:
    named = zip("abcd", (1.0, 0.2, 10.0, 0.5), strict=True)
    runs = [write_run(tmp_path / name, options={"strength": value}) for name, value in named]
    runs += [write_run(tmp_path / "z", options={"strength": 0.2}, seed=2)]
    runs += [write_run(tmp_path / "y", options={"strength": 0.2}, seed=1)]
    (group,) = compared(*runs)
    assert [setting.runs[0].options["strength"] for setting in group.settings] == [0.2, 0.5, 1.0, 10.0]
    assert [run.seed for run in group.settings[0].runs] == [0, 1, 2]


def test_settings_that_differ_in_text_stand_in_its_order(tmp_path: Path) -> None:
    named = zip("abc", ("spherical", "paper", "released"), strict=True)
    runs = [write_run(tmp_path / name, decay_on=value) for name, value in named]
    (group,) = compared(*runs)
    shown = [setting.runs[0].settled["decay_on"] for setting in group.settings]
    assert shown == ["paper", "released", "spherical"]


def test_a_pretrained_model_has_no_spread_over_the_seeds_that_share_it(tmp_path: Path) -> None:
    (group,) = compared(*(write_run(tmp_path / str(seed), seed=seed) for seed in range(3)))
    assert group.settings[0].estimate(TASK, "before") == wilson_interval(0.5, 50)
    (group,) = compared(
        *(write_run(tmp_path / f"r{seed}", seed=seed, accuracy=(0.1 * seed, 0.9)) for seed in range(3))
    )
    assert group.settings[0].estimate(TASK, "before") == t_interval([0.0, 0.1, 0.2])


def test_labels_show_of_paths_what_differs(tmp_path: Path) -> None:
    places = ("/a/b/seed-0/start", "/a/b/seed-1/start", "/a/b/seed-1/more/start")
    runs = [write_run(tmp_path / str(i), model=place) for i, place in enumerate(places)]
    (group,) = compared(*runs)
    labels = [setting.label for setting in group.settings]
    assert labels == ["TRACER · model seed-0", "TRACER · model seed-1/more", "TRACER · model seed-1"]
    (group,) = compared(*runs[:1], write_run(tmp_path / "z", model="tiny-28"))
    assert [s.label for s in group.settings] == ["TRACER · model /a/b/seed-0/start", "TRACER · model tiny-28"]


def test_in_a_crowd_only_those_are_named_that_none_surpasses(tmp_path: Path) -> None:
    runs = [
        write_run(
            tmp_path / str(i), options={"strength": i / 10}, accuracy=(0.5, 0.6 + i / 50), kept=(0.9, 0.8)
        )
        for i in range(1, 13)
    ]
    runs.append(write_run(tmp_path / "x", method="flyp", accuracy=(0.5, 0.6), kept=(0.9, 0.85)))
    (group,) = compared(*runs)
    chart = frontier(group, "f", group.retained)
    assert chart is not None
    named = [series.name for series in chart.series if series.named and not series.guide]
    assert named == ["pretrained", "TRACER · strength 1.2", "FLYP"]
    assert chart.caption.endswith("Only settings that no other surpasses in both are named.")


def test_the_headline_tells_what_became_of_calibration(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", accuracy=(0.5, 0.9))
    result = json.loads((folder / "result.json").read_text())
    result["before"]["ece"], result["after"]["ece"] = 0.081, 0.154
    (folder / "result.json").write_text(json.dumps(result))
    (group,) = compared(folder)
    assert headline(group).endswith(" Its calibration error on held-out images went from 0.081 to 0.154.")
    (group,) = compared(folder, write_run(tmp_path / "b", method="flyp", accuracy=(0.5, 0.8)))
    assert "calibration error on held-out images went from 0.081 to 0.154." in headline(group)


def test_the_headline_names_the_trade(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a", method="flyp", accuracy=(0.5, 0.99), kept=(0.95, 0.60)),
        write_run(tmp_path / "b", accuracy=(0.5, 0.99), kept=(0.95, 0.94)),
        write_run(tmp_path / "c", method="static_sd", accuracy=(0.5, 0.80), kept=(0.95, 0.95)),
    ]
    (group,) = compared(*runs)
    assert headline(group) == (
        "FLYP and TRACER reach 99.0 [91.1, 99.9] % of 50 images on colours, from 50.0 %, more than Static "
        "self-distillation (80.0 %) beyond noise; of these, TRACER keeps most of digits (−1.0 points), FLYP least "
        "(−35.0). Static self-distillation keeps more (+0.0) and stops at 80.0 %."
    )


def test_settings_within_noise_of_each_other_are_not_ranked(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a", method="flyp", accuracy=(0.5, 0.90)),
        write_run(tmp_path / "b", accuracy=(0.5, 0.92)),
    ]
    (group,) = compared(*runs)
    assert "; FLYP (90.0 %) is within the noise of that" in headline(group)


def test_a_run_under_way_has_a_headline_too(tmp_path: Path) -> None:
    (group,) = compared(write_run(tmp_path / "a", steps=40, finished=False))
    assert headline(group) == "The run has not finished: a is at step 40 of 40."


def test_results_may_hold_more_than_we_know(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    after = {
        "accuracy": 0.9,
        "ece": 0.04,
        "retain": {"digits": {"accuracy": 0.7, "ece": 0.1}},
        "sketch": {"accuracy": 0.3},
        "note": "nothing",
        "broken": None,
    }
    intervals = {"after": {"accuracy": [0.8, 0.9, 0.95], "ece": [0.0, 0.1], "other": [0, 1, 2]}}
    (folder / "result.json").write_text(json.dumps({"before": [], "after": after, "intervals": intervals}))
    values = measured(read_run(folder), "after")
    assert values[TASK] == (0.8, 0.9, 0.95)
    labels = {key.label: key for key in values}
    assert labels["kept: digits"].retained
    assert labels["sketch"].better == "higher"
    assert labels["ECE"].better == "lower"
    assert len(values) == 5
    assert measured(read_run(folder), "before") == {}


@pytest.mark.parametrize("name", ["retain", "calibration", "retention", "suite", "accuracy"])
@pytest.mark.parametrize("inside", [None, "accuracy", "id"])
def test_names_of_the_report_may_stand_for_other_things_in_a_result(
    tmp_path: Path, name: str, inside: str | None
) -> None:
    folder = write_run(tmp_path / "a")
    scores = {"task": {"accuracy": 0.5}, name: 0.25 if inside is None else {inside: 0.25}}
    (folder / "result.json").write_text(json.dumps({"before": scores, "after": scores}))
    write_report([folder], tmp_path / "page.html")
    assert "25.0 %" in (page := (tmp_path / "page.html").read_text()) or "0.250" in page


def test_retention_and_warnings_of_a_result_are_shown(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    result = json.loads((folder / "result.json").read_text())
    result |= {"retention": {"agreement": 0.4, "kl": 2.5}, "warnings": ["digits fell from 95 % to 9 %"]}
    result["after"] |= {"ece": 0.1, "calibration": {"digits": {"ece": 0.2}}}
    (folder / "result.json").write_text(json.dumps(result))
    run = read_run(folder)
    assert run.notes == ("digits fell from 95 % to 9 %",)
    values = measured(run, "after")
    assert [key.label for key in values] == [
        "task", "kept: digits", "ECE", "kept: digits · ECE", "agrees with pretrained", "KL from pretrained"
    ]  # fmt: skip
    assert measured(run, "before").keys() == {TASK, DIGITS}


def test_what_moved_for_the_task_is_shown_where_it_was_analysed(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    analysis = {"task_share": {"inside": 0.6, "chance": 0.1}}
    (folder / "analysis.json").write_text(json.dumps(analysis))
    (group,) = compared(folder, write_run(tmp_path / "b", method="flyp"))
    (share,) = representation(group)
    assert share.x.names == ("in the task's span", "by chance")
    assert [[point.y for point in series.points] for series in share.series] == [[0.6, 0.1]]
    points = ((0, 0.5), (0.4, math.nan), (0.5, 0.6), (1, 0.7))
    path = [{"alpha": alpha, "accuracy": y, "retain": {"digits": 0.5}} for alpha, y in points]
    (folder / "analysis.json").write_text(json.dumps({"path": path}))
    ((line,),) = (chart.series for chart in representation(compared(folder)[0]))
    assert [point.x for point in line.points] == [0.0, 0.5, 1.0]
    write_report([folder], tmp_path / "page.html")  # whose data may hold no NaN
    (folder / "analysis.json").write_text('{"layers": {"skipped": "no image"}, "task_share": null}')
    assert representation(compared(folder)[0]) == []
