"""docs/ablations.md agrees with its data and with the paper's tables."""

from __future__ import annotations

import pytest

from studies.ablations import full_run
from studies.ablations.page import ABLATIONS, PAGE, Ablation, table
from studies.ablations.published import STRENGTH, TERMS
from tracer.recipes.ablation import interval


@pytest.mark.parametrize("ablation", ABLATIONS, ids=lambda each: each.name)
def test_the_tables_are_those_of_the_runs(ablation: Ablation) -> None:
    _, shown, _ = PAGE.read_text(encoding="utf-8").split(f"<!-- {ablation.name} -->")
    assert shown.strip() == table(ablation)


def test_what_is_said_of_the_papers_interactive_term_is_in_its_table() -> None:
    without = [key for key in TERMS if key[2] == "0"]
    change = {key: TERMS[f"{key[:2]}1{key[3]}"].shifts - TERMS[key].shifts for key in without}
    worse = {key: -each for key, each in change.items() if each < 0}
    assert len(worse) == 6
    assert {key[3] for key in worse} == {"0", "1"}, "with and without CRD"
    assert (round(min(worse.values()), 1), round(max(worse.values()), 1)) == (0.1, 0.6)
    page = PAGE.read_text(encoding="utf-8")
    assert "six of eight, by less (0.1 to 0.6)" in page
    assert f"alone it helps there ({TERMS['0010'].shifts:.2f} against {TERMS['0000'].shifts:.2f})" in page


def test_who_leads_in_the_paper_depends_on_how_the_task_counts() -> None:
    one_of_six = max(TERMS, key=lambda key: (TERMS[key].task + 5 * TERMS[key].shifts) / 6)
    as_much = max(TERMS, key=lambda key: (TERMS[key].task + TERMS[key].shifts) / 2)
    shifts = max(TERMS, key=lambda key: TERMS[key].shifts)
    assert (one_of_six, as_much, shifts) == ("1111", "1011", "1001")


def test_how_much_of_the_papers_was_run_is_said() -> None:
    strength = next(each for each in ABLATIONS if each.name == "strength")
    rows = len(table(strength).splitlines()) - 2
    recipe = {experiment.options["every"] for experiment in interval(seeds=1).experiments}
    moves = next(each for each in ABLATIONS if each.name == "interval")
    ran = {line.split("|")[1].split(",")[0].strip() for line in table(moves).splitlines()[2:]}
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"{rows} of its {len(STRENGTH)} λ, and {len(ran)} of the {len(recipe)} intervals" in page
    assert "1" in STRENGTH


@pytest.mark.usefixtures("unchecked")  # for speed
def test_teachers_over_the_papers_own_length_keep_the_order_of_the_released_curves() -> None:
    courses = full_run.courses()
    _, shown, _ = PAGE.read_text(encoding="utf-8").split("<!-- full run -->")
    assert shown.strip() == full_run.table(courses)
    assert [round(each, 2) for each in full_run.rank_correlations(courses)] == [0.98, 0.99, 0.99, 1.0]
    by_progress = {f"every {n}": courses[f"every {n}, by progress"] for n in (500, 2500)}
    assert full_run.rank_correlations({**courses, **by_progress})[-1] < 0.8, "another clock has another order"
