"""What `tracer eval` has measured stands in the report, in the paper's layout."""

from __future__ import annotations

from itertools import combinations
from math import hypot
from pathlib import Path

import pytest
from written import write_run, write_scores

from tracer.core.metrics import t_interval
from tracer.report.comparison import Group, compare
from tracer.report.frontier import frontier
from tracer.report.headline import headline
from tracer.report.page import read_page, write_report
from tracer.report.run_data import read_run
from tracer.report.scores import suite_tables

NOTHING_RETAINED = '{"before": {"accuracy": 0.5}, "after": {"accuracy": 0.9}}'
BEFORE = {"colours": ("id", 0.5), "night": ("ood", 0.4), "fog": ("ood", 0.3), "digits": ("retain", 0.9)}


def evaluated(folder: Path, shifted: float = 0.0, **run: object) -> Path:
    """A run measured on two shifts, before and after."""
    made = write_run(folder, **run)  # pyright: ignore[reportArgumentType]
    after = {"colours": 0.9, "night": 0.7 + shifted, "fog": 0.5 + shifted, "digits": 0.8}
    write_scores(made, {name: (role, after[name]) for name, (role, _) in BEFORE.items()})
    write_scores(made, BEFORE, "pretrained")
    return made


def grouped(*folders: Path) -> Group:
    (group,) = compare([read_run(folder) for folder in folders])
    return group


def test_columns_stand_as_in_the_paper_with_the_mean_over_shifts(tmp_path: Path) -> None:
    accuracy, ece = suite_tables(grouped(evaluated(tmp_path / "a")))
    heads = [column.label for column in accuracy.columns]
    assert heads == ["setting", "ID: colours", "night", "fog", "OOD avg (2)", "kept: digits"]
    assert [column.label for column in ece.columns] == heads
    assert accuracy.fixed == 1
    before, after = accuracy.rows
    assert [cell.text for cell in before] == ["Pretrained", "50.0 %", "40.0 %", "30.0 %", "35.0 %", "90.0 %"]
    assert [cell.text for cell in after[1:]] == ["90.0 %", "70.0 %", "50.0 %", "60.0 %", "80.0 %"]
    half = 100 * hypot(0.01, 0.01) / 2  # independent sets: half-widths add up in squares
    assert after[4].detail == f"+25.0 [{60 - half:.1f},\xa0{60 + half:.1f}]"
    assert ece.rows[1][4].order == pytest.approx(0.06)


def test_seeds_are_averaged_shift_by_shift(tmp_path: Path) -> None:
    runs = [evaluated(tmp_path / str(i), seed=i, shifted=i / 100) for i in range(3)]
    runs.append(write_run(tmp_path / "unmeasured", seed=3))
    accuracy, _ = suite_tables(grouped(*runs))
    _, after = accuracy.rows
    wanted = t_interval([0.60, 0.61, 0.62])
    assert after[4].order == pytest.approx(wanted.value)
    low, high = (100 * (end or 0) for end in (wanted.low, wanted.high))
    assert after[4].detail == f"+26.0 [{low:.1f},\xa0{high:.1f}]"


def test_the_best_is_marked_and_fewer_images_do_not_compete(tmp_path: Path) -> None:
    runs = [evaluated(tmp_path / "a"), evaluated(tmp_path / "b", method="flyp", shifted=-0.1)]
    part = write_run(tmp_path / "c", method="ft")
    write_scores(part, {name: (role, 0.99) for name, (role, _) in BEFORE.items()}, n=20)
    accuracy, _ = suite_tables(grouped(*runs, part))
    marked = [[cell.best for cell in row[1:]] for row in accuracy.rows[1:]]
    assert marked == [[False, True, True, True, False], [False] * 5, [False] * 5], (
        "equal ones are not the best"
    )
    assert accuracy.rows[3][1].text == "99.0 %†"
    assert "incomplete copy" in accuracy.caption


def test_what_looks_the_same_is_not_bold(tmp_path: Path) -> None:
    """As in the comparison above it: 70.01 and 70.04 % are both shown as 70.0 %."""
    runs = [write_run(tmp_path / method, method=method) for method in ("tracer", "flyp", "ft")]
    for run, share in zip(runs, (0.7001, 0.7004, 0.6), strict=True):
        write_scores(run, {"night": ("ood", share)})
    accuracy, _ = suite_tables(grouped(*runs))
    assert [row[1].best for row in accuracy.rows] == [True, True, False]


def test_the_frontier_and_the_headline_use_the_shifts_where_nothing_was_retained(tmp_path: Path) -> None:
    group = grouped(evaluated(tmp_path / "a", retain="none"))
    both = frontier(group, "f", group.shifts)
    assert both is not None
    start, end = (s.points[0][:2] for s in both.series if not s.guide)
    assert (start, end) == (pytest.approx((0.35, 0.5)), pytest.approx((0.6, 0.9)))
    assert both.x.label == "OOD: mean accuracy on night and fog"
    assert both.y.label == "ID: accuracy on colours"
    alone = write_run(tmp_path / "b")
    (alone / "result.json").write_text(NOTHING_RETAINED)
    for weights, accuracy in (("pretrained", 0.4), ("result", 0.8)):
        write_scores(alone, {"night": ("ood", accuracy), "fog": ("ood", accuracy - 0.1)}, weights)
    told = headline(grouped(alone))
    assert "night gained 40.0 ± 1.4 points (40.0 → 80.0 % of 50 images)" in told
    assert "fog gained 40.0 ± 1.4 points (30.0 → 70.0 % of 50 images)" in told


ROLES = ("id", "ood", "retain")


@pytest.mark.parametrize("trained", ["retained", "nothing retained"])
@pytest.mark.parametrize("roles", [each for size in range(4) for each in combinations(ROLES, size)])
def test_every_combination_of_roles_has_a_page(tmp_path: Path, roles: tuple[str, ...], trained: str) -> None:
    """`tracer eval RUN --data test/` gives an id set and no shift; each other subset is as good."""
    folder = write_run(tmp_path / "a")
    if trained != "retained":
        (folder / "result.json").write_text(NOTHING_RETAINED)
    for weights, accuracy in (("pretrained", 0.4), ("result", 0.8)) if roles else ():
        write_scores(folder, {f"my {role} set": (role, accuracy) for role in roles}, weights)
    write_report([folder], tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    for role in roles:
        assert f"my {role} set" in html
    charts = {chart.name for chart in read_page([folder]).charts}
    assert ("g1-frontier" in charts) == (trained == "retained" or bool({"ood", "retain"} & {*roles}))
    assert ("of 50 test images" in html) == ("id" in roles)


def test_the_page_shows_both_pictures_and_one_where_they_are_the_same(tmp_path: Path) -> None:
    folder = evaluated(tmp_path / "a")
    assert {"g1-frontier", "g1-shifts"} <= {chart.name for chart in read_page([folder]).charts}
    write_report([folder], tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    assert "OOD avg (2)" in html
    assert "night, fog" in html
    alone = write_run(tmp_path / "b")
    (alone / "result.json").write_text(NOTHING_RETAINED)
    for weights in ("pretrained", "result"):
        write_scores(alone, {"night": ("ood", 0.5)}, weights)
    assert "g1-shifts" not in {chart.name for chart in read_page([alone]).charts}


def test_without_the_pretrained_model_the_page_says_how_to_add_it(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    write_scores(folder, {"night": ("ood", 0.5)})
    accuracy, _ = suite_tables(grouped(folder))
    assert accuracy.fixed == 0
    assert "without --weights adds the pretrained model" in accuracy.caption


@pytest.mark.parametrize("damage", ["cut", "another number"])
def test_answers_that_cannot_be_read_are_told_and_the_rest_stands(tmp_path: Path, damage: str) -> None:
    folder = evaluated(tmp_path / "a")
    file = next((folder / "predictions" / "result").glob("night-*"))
    whole = file.read_bytes()
    count = len(read_run(folder).scored["after"])
    file.write_bytes(whole[:-20] if damage == "cut" else whole.replace(b"0.", b"7.", 1))
    run = read_run(folder)
    assert any(f"result/{file.name} is not readable" in note for note in run.notes)
    assert len(run.scored["after"]) == count - 2
    assert suite_tables(grouped(write_run(tmp_path / "b"))) == []
