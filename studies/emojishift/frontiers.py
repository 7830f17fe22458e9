"""The figure of the study: task accuracy against OOD accuracy and retention, along α (WiSE-FT) and along λ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from studies.emojishift.checks import Arms
from studies.emojishift.compare import value
from studies.emojishift.rows import Measure, Row
from studies.emojishift.study import MAIN, ZERO_SHOT
from studies.figure import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, blank
from tracer.methods.base import options

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "direct FT": RED,
    "FLYP": ORANGE,
    "L2-SP": GREY,
    "CaRot": GREEN,
    "static": BLUE,
    "EMA": SKY,
    "TRACER": PURPLE,
}
MARKS = dict(zip(COLOURS, "sDvP^ho", strict=True))
DEFAULTS = {
    arm.name: float(option.default)
    for arm in MAIN
    for option in options(arm.method)
    if option.name == "strength"
}
KEPT: dict[Measure, str] = {"ood": "OOD, mean over other styles (%)", "retention": "retention of names (%)"}


# Each row of the figure: the study that is drawn, and the study with the zero-shot row of its pretrained model.
ROWS = {"main": "main", "strengths": "main", "weak strengths": "weak"}


def frontiers(studies: Mapping[str, Arms]) -> Figure:
    """The main study along α in the upper row; below it the studies of λ that were run."""
    shown = [name for name in ROWS if name in studies]
    figure = blank(width=11, height=1 + 4 * len(shown))
    panels = figure.subplots(len(shown), 2, squeeze=False)
    for row, name in zip(panels, shown, strict=True):
        start = studies[ROWS[name]][ZERO_SHOT.name]
        for axes, measure in zip(row, KEPT, strict=True):
            if name == "main":
                _draw_mixtures(axes, studies[name], start, measure)
            else:
                _draw_strengths(axes, studies[name], measure)
                where = "Weak start: over" if name.startswith("weak") else "Over"
                axes.set_title(f"{where} λ (beside the marks; ring: default)")
            axes.plot(*_place(start, measure), "*", color=BLACK, markersize=12, label=ZERO_SHOT.name)
            axes.set(xlabel="task, unseen emoji in the trained style (%)", ylabel=KEPT[measure])
            axes.grid(alpha=0.3)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _draw_mixtures(axes: Axes, arms: Arms, start: Sequence[Row], measure: Measure) -> None:
    """From each finetuned model (large mark) over its mixtures to the pretrained model."""
    for name in (each for each in COLOURS if each in arms):
        alphas = sorted(map(float, arms[name][0].scores), reverse=True)
        finetuned, *mixed = [_place(arms[name], measure, alpha) for alpha in alphas]
        path = [finetuned, *mixed, _place(start, measure)]
        axes.plot(*zip(*path, strict=True), ".-", color=COLOURS[name], linewidth=1, alpha=0.7)
        axes.plot(*finetuned, MARKS[name], color=COLOURS[name], markersize=9, label=name, linestyle="")
    axes.set_title("Finetuned (large), mixed with the start (small)")


def _draw_strengths(axes: Axes, arms: Arms, measure: Measure) -> None:
    """Each method from its smallest λ to its largest; a ring marks the default."""
    for name in COLOURS:
        others = {
            float(arm.partition("λ=")[2]): rows for arm, rows in arms.items() if arm.startswith(f"{name} λ=")
        }
        if not others:
            continue
        over = sorted({DEFAULTS[name]: arms[name], **others}.items())
        places = [_place(rows, measure) for _, rows in over]
        axes.plot(
            *zip(*places, strict=True), MARKS[name] + "-", color=COLOURS[name], linewidth=1, markersize=5
        )
        for (strength, _), place in zip(over, places, strict=True):
            axes.annotate(f"{strength:g}", place, textcoords="offset points", xytext=(6, 4), fontsize=7)
        axes.plot(*_place(arms[name], measure), "o", color=COLOURS[name], markersize=11, fillstyle="none")


def _place(rows: Sequence[Row], measure: Measure, alpha: float = 1.0) -> tuple[float, float]:
    return 100 * value(rows, "id", alpha).value, 100 * value(rows, measure, alpha).value
