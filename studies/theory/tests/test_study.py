"""The study writes its figures completely or not at all, and reports theorems that do not hold."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

import pytest

from studies.theory import figures
from studies.theory.spaces import SPACES
from studies.theory.study import Study, draw_figures, study
from studies.theory.theorems import THEOREMS, Result
from tracer.core.errors import UserError


def test_figures_are_written_as_svg_and_png_and_nothing_else(figures_folder: Path) -> None:
    folder = figures_folder
    expected = {f"theory-{name}.{suffix}" for name in figures.FIGURES for suffix in ("svg", "png")}
    assert {path.name for path in folder.iterdir()} == expected
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in folder.glob("*.png"))
    assert all("</svg>" in path.read_text()[-20:] for path in folder.glob("*.svg"))


def test_same_code_draws_the_same_bytes(
    figures_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studies.theory.study.FIGURES", {"contraction": figures.contractions})
    for path in draw_figures(tmp_path):
        assert path.read_bytes() == (figures_folder / path.name).read_bytes(), path.name


@pytest.mark.parametrize("name", figures.FIGURES)
def test_every_panel_has_names_and_a_legend_that_hides_no_curve(name: str) -> None:
    figure = figures.FIGURES[name]()
    figure.draw_without_rendering()
    for axes in figure.axes:
        assert axes.get_title()
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        legend = axes.get_legend()
        assert legend is not None
        box = legend.get_window_extent()
        for line in axes.get_lines():
            if not str(line.get_label()).startswith("_"):
                points = axes.transData.transform(line.get_xydata())
                visible = [p for p in points if axes.bbox.contains(*p)]
                assert not any(box.contains(*point) for point in visible), (name, line.get_label())


def test_study_without_a_folder_writes_nothing_and_holds() -> None:
    outcome = study(instances=1)
    assert outcome.holds
    assert outcome.files == []
    assert len(outcome.rows) == len(THEOREMS)
    assert {result.space for result in outcome.results} == set(SPACES)
    assert all(
        (row[4] == "–") == (not theorem.about_inputs)
        for row, theorem in zip(outcome.rows, THEOREMS, strict=True)
    )
    assert outcome.lines()[-1].endswith("all hold")


@pytest.mark.parametrize("worst", [1e-3, float("nan")])
def test_violations_are_named(worst: float) -> None:
    outcome = Study([Result("good", "", 1e-12, 5), Result("bad", "", worst, 5)])
    assert not outcome.holds
    assert outcome.lines()[-1].endswith("violated: bad")


def test_a_violation_in_feature_space_says_where() -> None:
    outcome = Study([Result("good", "", 1e-12, 5), Result("good", "", 1.0, 5, space="random features")])
    assert not outcome.holds
    assert outcome.rows[0][3:] == ("1.0e-12", "1.0e+00", "–")
    assert outcome.lines()[-1].endswith("violated: good (random features)")


def test_missing_matplotlib_is_said_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    genuine = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return genuine(name, *rest, **named)

    for module in [module for module in sys.modules if module.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match="pip install matplotlib"):
        study(tmp_path / "out", instances=1)
    assert not (tmp_path / "out").exists()
