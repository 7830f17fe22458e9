"""Tables: the paper's layout and averages, marks, intervals, and formats."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from io import StringIO

import pytest

from tracer.core import metrics
from tracer.core.errors import UserError
from tracer.core.metrics import Interval
from tracer.data.examples import Examples
from tracer.evaluation.render import document
from tracer.evaluation.suites.imagenet import FOUR, SETS
from tracer.evaluation.suites.shift import Average, Shift, Suite
from tracer.evaluation.tables import Cell, Column, Table, averaged, tabulated


def cell(value: float | Interval, partial: bool = False, n: int | None = None) -> Cell:
    """A cell of a value, or of a value with its interval."""
    return Cell(value if isinstance(value, Interval) else Interval.unknown(value), partial, n)


def unread() -> Examples:
    raise AssertionError("a table reads no data")


def layout(*extra: Shift) -> Suite:
    shifts = [Shift(each.name, each.role, unread, (), short=each.short) for each in SETS.values()]
    return Suite("imagenet", (*extra, *shifts), extra=(FOUR,))


NAMES = [each.name for each in SETS.values()]

# Table 1 of the paper, in percent: ID, V2, R, A, Sketch, ObjectNet, and its average over the five shifts.
PAPER = {
    "FLYP": ((82.72, 72.76, 71.32, 48.49, 49.87, 54.83), 59.45),
    "Lipsum-FT": ((83.32, 73.57, 75.93, 49.87, 51.43, 54.35), 61.03),
    "CaRot": ((83.15, 74.08, 77.74, 51.57, 52.68, 56.63), 62.54),
    "TRACER": ((82.76, 74.14, 79.33, 54.92, 53.69, 58.26), 64.07),
}


def paper() -> Table:
    results = {
        name: {column: cell(value / 100) for column, value in zip(NAMES, values, strict=True)}
        for name, (values, _) in PAPER.items()
    }
    return replace(tabulated(metrics.accuracy, layout(), results), title="ImageNet", notes=("a note",))


def test_columns_in_the_papers_order() -> None:
    heads = [column.head for column in paper().columns]
    assert heads == [
        *("IN", "IN-V2", "IN-R", "IN-A", "IN-S", "ObjNet"),
        *("OOD avg (5)", "OOD w/o ObjNet avg (4)"),
    ]
    kept = Shift("Pets", "retain", unread, ())
    assert [column.name for column in tabulated(metrics.nll, layout(kept), {}).columns][-1] == "Pets"


def test_averages_are_those_of_the_paper() -> None:
    table = paper()
    for name, cells in table.rows:
        values, average = PAPER[name]
        assert table.shown(cells["OOD"].interval.value) == f"{average:.2f}"
        assert cells[FOUR.name].interval.value == pytest.approx(sum(values[1:5]) / 400)


def test_best_and_second_best() -> None:
    table = paper()
    marks = {name: [table.mark(row, column) for column in NAMES] for row, (name, _) in enumerate(table.rows)}
    assert marks == {
        "FLYP": ["", "", "", "", "", ""],
        "Lipsum-FT": ["best", "", "", "", "", ""],
        "CaRot": ["second", *["second"] * 5],
        "TRACER": ["", *["best"] * 5],
    }


def small(better: metrics.Metric[...], **values: float | Cell) -> Table:
    suite = Suite("s", (Shift("x", "id", unread, ()),))
    cells = {name: {"x": value if isinstance(value, Cell) else cell(value)} for name, value in values.items()}
    return tabulated(better, suite, cells)


def test_for_errors_less_is_better() -> None:
    table = small(metrics.ece, a=0.3, b=0.1, c=0.2)
    assert [table.mark(row, "x") for row in range(3)] == ["", "best", "second"]


def test_what_prints_the_same_ranks_the_same() -> None:
    table = small(metrics.accuracy, a=0.50001, b=0.50002, c=0.4, d=0.3)
    assert [table.mark(row, "x") for row in range(4)] == ["best", "best", "second", ""]


def test_alone_is_not_the_best() -> None:
    assert small(metrics.accuracy, a=0.5).mark(0, "x") == ""


def test_partial_numbers_are_marked_and_do_not_compete() -> None:
    table = small(metrics.accuracy, a=cell(0.9, partial=True), b=0.5, c=0.4)
    assert [table.mark(row, "x") for row in range(3)] == ["", "best", "second"]
    for format, sign in (("text", "90.00†"), ("markdown", "90.00†"), ("latex", r"90.00$^{\dagger}$")):
        assert sign in document([table], format)
        assert document([table, table], format).count("incomplete copy") == (1 if format == "text" else 2)
    assert "incomplete copy" not in document([small(metrics.accuracy, a=0.9)])


def test_what_is_partial_or_absent_touches_its_averages() -> None:
    both = Average("both", ("x", "y"))
    assert averaged(both, {"x": cell(0.25), "y": cell(0.75)}) == cell(0.5)
    assert averaged(both, {"x": cell(0.25), "y": cell(0.75, partial=True)}) == cell(0.5, partial=True)
    assert averaged(both, {"x": cell(0.25)}) == cell(0.25, partial=True)
    assert averaged(both, {}) is None


def test_intervals_of_independent_sets_add_in_squares() -> None:
    cells = {"x": cell(Interval(0.17, 0.2, 0.23)), "y": cell(Interval(0.36, 0.4, 0.44))}
    mean = averaged(Average("both", ("x", "y")), cells)
    assert mean is not None
    low, value, high = mean.interval
    assert value - low == pytest.approx(math.hypot(0.03, 0.04) / 2)
    assert high == pytest.approx(0.325)
    half = averaged(Average("both", ("x", "y")), {**cells, "y": cell(0.4)})
    assert half is not None
    assert not half.interval.known


def test_text() -> None:
    table = small(metrics.accuracy, ours=0.82, theirs=0.5)
    assert document([table]).splitlines() == [
        "                ours  theirs  images",
        "─────────────  ─────  ──────  ──────",
        "x, accuracy ↑  82.00   50.00",
    ]


def test_markdown() -> None:
    lines = document([small(metrics.ece, **{"a|b": 0.1, "c": 0.0451})], "markdown").splitlines()
    assert lines == ["| ece ↓ | x |", "| --- | --: |", "| a\\|b | _0.1000_ |", "| c | **0.0451** |"]


def test_latex() -> None:
    table = replace(small(metrics.accuracy, **{"L2_SP & 50%": 0.82, "b": 0.5}), title="T", notes=("n",))
    assert document([table], "latex").splitlines() == [
        "% T",
        "% n",
        r"\begin{tabular}{l|c}",
        r"\toprule",
        r"Method & x$\uparrow$ \\",
        r"\midrule",
        r"L2\_SP \& 50\% & \textbf{82.00} \\",
        r"b & \underline{50.00} \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert r"\begin{tabular}{l|c||ccccc|cc}" in document([paper()], "latex")


def test_a_number_that_is_missing_is_a_dash() -> None:
    suite = Suite("s", (Shift("x", "id", unread, ()), Shift("y", "id", unread, ())))
    table = tabulated(metrics.accuracy, suite, {"a": {"x": cell(0.5)}, "b": {"y": cell(0.1)}})
    x, y = document([table]).splitlines()[-2:]
    assert (x.split()[-2:], y.split()[-2:]) == (["50.00", "–"], ["–", "10.00"])


def rich() -> Table:
    odd = {'IN, the "first"': {"ImageNet": cell(2 / 3), "ImageNet-A": cell(0.1, partial=True)}}
    more = {"b": {name: cell(Interval(0.1, 0.2, 0.30000000000000004)) for name in NAMES}}
    return replace(tabulated(metrics.ece, layout(), odd | more), title="Títle", notes=("one", "two"))


def test_json_holds_every_number_and_the_notes() -> None:
    for table in (paper(), rich()):
        content = json.loads(document([table], "json"))[0]
        assert (content["title"], tuple(content["notes"])) == (table.title, table.notes)
        for (name, cells), (own, written) in zip(table.rows, content["rows"], strict=True):
            assert (name, list(cells)) == (own, list(written))
            for each, values in zip(cells.values(), written.values(), strict=True):
                low, value, high = each.interval
                ends = [low, high] if each.interval.known else [None, None]
                assert list(values.values()) == [[value], *ends, each.partial, each.n]


def test_csv_has_a_line_for_each_number_in_full_precision() -> None:
    for table in (paper(), rich()):
        lines = list(csv.DictReader(StringIO(document([table], "csv"))))
        for name, cells in table.rows:
            for column in table.columns:
                own = [line for line in lines if (line["model"], line["column"]) == (name, column.name)]
                values = [cells[column.name].interval.value] if column.name in cells else []
                assert [float(line["value"]) for line in own if line["value"]] == values


def test_unknown_formats_are_told() -> None:
    with pytest.raises(UserError, match="did you mean latex"):
        document([paper()], "latx")


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_cell_holds_numbers(wrong: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        cell(wrong)


def test_a_summary_has_every_number_with_its_interval_and_count() -> None:
    rows = tuple(
        (name, {"x": cell(Interval(value - 0.1, value, value + 0.1), n=50)})
        for name, value in (("a", 0.3), ("b", 0.5))
    )
    columns = (Column("x", "photos", "id"), Column("y", "missing", "ood"))
    tables = [Table(metric, "higher", True, columns, rows) for metric in ("accuracy", "top5")]
    assert [line.split() for line in document(tables).splitlines()] == [
        ["a", "b", "images"],
        ["─" * 18, "─" * 20, "─" * 20, "─" * 6],
        *(
            f"photos, {metric} ↑ 30.00 [20.00, 40.00] 50.00 [40.00, 60.00] 50".split()
            for metric in ("accuracy", "top5")
        ),
    ]
