"""Figures: scales, ticks, thinning, CSV, and pictures that are well-formed whatever the names."""

from __future__ import annotations

import csv
import io
import itertools
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.report.chart import Axis, Chart, Point, Series, slug
from tracer.report.scale import Scale, scales
from tracer.report.svg import LETTER, LINE, Area, described, payload, place_labels, svg, write_figures
from tracer.report.templates import cut

numbers = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda value: round(value, 6))


def chart(*series: Series, **kwargs: object) -> Chart:
    axes = {"x": Axis("step"), "y": Axis("loss")} | kwargs
    return Chart("c", "Title", "Caption.", series=series, **axes)  # pyright: ignore[reportArgumentType]


@given(st.lists(numbers, min_size=1, max_size=20))
def test_every_value_lies_on_the_picture(values: list[float]) -> None:
    scale = Scale.of(Axis("y"), values, 200.0, 20.0)
    assert all(20 - 1e-6 <= scale(value) <= 200 + 1e-6 for value in values)
    order = sorted(values)
    assert [scale(value) for value in order] == sorted((scale(value) for value in values), reverse=True)


@given(st.lists(numbers, min_size=2, max_size=5))
def test_ticks_are_few_inside_and_evenly_spaced(values: list[float]) -> None:
    ticks = Scale.of(Axis("y"), values, 0.0, 100.0).ticks()
    places = [at for at, _ in ticks]
    assert 1 <= len(ticks) <= 6
    assert all(-1e-6 <= at <= 100 + 1e-6 for at in places)
    gaps = [b - a for a, b in itertools.pairwise(places)]
    assert all(gap == pytest.approx(gaps[0], abs=1e-3) for gap in gaps)


def test_ticks_read_as_what_they_mark() -> None:
    assert [text for _, text in Scale.of(Axis("y", percent=True), [0.0, 1.0], 0, 1).ticks()] == [
        "0", "25", "50", "75", "100"
    ]  # fmt: skip
    assert [text for _, text in Scale.of(Axis("x", log=True), [0.1, 10], 0, 1).ticks()] == ["0.1", "1", "10"]


@given(st.integers(1, 500), st.integers(1, 100))
def test_thinning_keeps_ends_order_and_mean(n: int, most: int) -> None:
    points = tuple(Point(float(i), math.sin(i)) for i in range(n))
    fewer = Series("s", 0, points).thinned(most).points
    assert len(fewer) == min(n, most)
    assert fewer[-1].x == points[-1].x
    assert [point.x for point in fewer] == sorted({point.x for point in fewer})
    if n % most == 0:
        means = [sum(point.y for point in each) / len(each) for each in (fewer, points)]
        assert means[0] == pytest.approx(means[1], abs=1e-9)


def test_thinning_averages_intervals_with_their_values() -> None:
    """The interval of the last neighbour need not even hold the mean."""
    points = Point(0, 0.0, -1.0, 0.1), Point(1, 1.0, 0.9, 1.1), Point(2, 0.0), Point(3, 1.0, None, 5.0)
    first, second = Series("s", 0, points).thinned(2).points
    assert (first.y, second.y) == (0.5, 0.5)
    assert (first.low, second.low) == (pytest.approx(-0.05), None)
    assert (first.high, second.high) == (pytest.approx(0.6), 5.0)


def test_csv_gives_the_numbers_back_exactly() -> None:
    series = Series('=1+1, "x"\n', 0, (Point(1.0, 0.1), Point(2.0, 1 / 3, 0.2, 0.4)))
    rows = list(csv.DictReader(io.StringIO(chart(series).csv())))
    assert [float(row["loss"]) for row in rows] == [0.1, 1 / 3]
    assert [row["low"] for row in rows] == ["", "0.2"]
    assert all(row["series"].startswith("'=") for row in rows), "a spreadsheet would compute it"


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=40))
def test_pictures_are_well_formed_and_show_names_as_text(name: str) -> None:
    drawn = chart(Series(name, 0, (Point(0.5, 0.5),), mark="points"), labelled=True)
    root = ElementTree.fromstring(svg(drawn))
    (shown,) = root.findall("text[@data-slot]")
    assert (shown.text or "") == cut(name)
    assert {element.tag for element in root.iter()} <= {"svg", "title", "desc", "g", "line", "text", "circle"}


def test_a_picture_is_described_in_words() -> None:
    drawn = chart(Series("a", 0, (Point(1.0, 3.0), Point(2.0, 1.5))), Series("b", 1, (Point(1.0, 2.0),)))
    assert described(drawn) == "loss against step. a: from 3 to 1.5; b: 2 at 1."


def test_the_page_is_given_the_same_scale_that_was_drawn() -> None:
    drawn = chart(Series("a", 0, (Point(0.0, 1.0), Point(10.0, 3.0))))
    told, (x, y) = payload(drawn), scales(drawn)
    assert (told["x"]["low"], told["x"]["high"]) == (x.low, x.high)
    assert (told["y"]["low"], told["y"]["high"]) == (y.low, y.high)
    _, _, left, top, right, bottom = told["box"]
    assert (x(10.0), y(y.high), y(y.low)) == (right, top, bottom)
    assert x(0.0) == left


def test_names_do_not_cover_each_other_where_there_is_room() -> None:
    crowd = [
        Series(f"method {i}", i, (Point(0.9 + 0.001 * i, 0.8 + 0.001 * i),), mark="points") for i in range(4)
    ]
    drawn = chart(*crowd, labelled=True, x=Axis("x", percent=True), y=Axis("y", percent=True))
    labels = place_labels(drawn, *scales(drawn))
    areas = []
    for label in labels:
        width = LETTER * len(label.series.name)
        start = label.x - {"start": 0.0, "end": width, "middle": width / 2}[label.anchor]
        areas.append(Area(start, label.y - 4 - LINE / 2, start + width, label.y - 4 + LINE / 2))
    assert len(areas) == 4
    assert all(a.overlap(b) == 0 for i, a in enumerate(areas) for b in areas[:i])


def test_figures_are_written_as_svg_and_csv_alike_each_time(tmp_path: Path) -> None:
    """Each file is XML that a browser reads by itself: its style and the names of its series are inside."""
    lines = Series("$a_b$ <b> \x07", 0, (Point(1.0, 3.0, 2.0, 4.0), Point(2.0, 1.0, 0.5, 1.5)))
    points = Series("p", 1, (Point(1.0, 1.0, 0.5, 1.5), Point(2.0, 2.0)), mark="both")
    files = write_figures([chart(lines, points)], tmp_path / "one")
    again = write_figures([chart(lines, points)], tmp_path / "two")
    assert [file.suffix for file in files] == [".svg", ".csv"]
    assert [a.read_bytes() for a in files] == [b.read_bytes() for b in again]
    root = ElementTree.parse(files[0]).getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{space}svg"
    texts = [text.text for text in root.iter(f"{space}text")]
    assert {"$a_b$ <b> ␇", "p"} <= set(texts)
    assert "--s1" in (root.findtext(f"{space}style") or "")


@given(st.text())
def test_slugs_are_safe_in_ids_and_paths(text: str) -> None:
    made = slug(text)
    assert made
    assert all(c.isascii() and (c.isalnum() or c == "-") for c in made)


@given(st.integers(0, 5000), st.integers(2, 30_000))
def test_nothing_is_marked_between_two_steps(first: int, length: int) -> None:
    scale = Scale.of(Axis("step", whole=True), [first, first + length], 0.0, 300.0, margin=0.0)
    texts = [text for _, text in scale.ticks()]
    assert 1 <= len(texts) <= 7
    assert all(float(text.replace("−", "-")).is_integer() for text in texts)
