"""The page: whole in itself, safe with any name, honest about what is missing."""

from __future__ import annotations

import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image
from sweep.test_sweep import NANO  # a model that trains in a second
from written import write_answers, write_run, write_scores

from tracer.cli import app as cli
from tracer.cli.commands import train as training_command
from tracer.core.errors import UserError
from tracer.report import write_report
from tracer.report.commands import commands, training
from tracer.report.page import HERE, embedded, read_page
from tracer.report.run_data import read_run

HOSTILE = "<script>x()</script>\"'&amp; \n</script><!-- 🦜 \u202e [red]"


class Reader(HTMLParser):
    """Elements, attributes and text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.ids: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id" and value]

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(*folders: Path) -> str:
    out = folders[0].parent / "report.html"
    write_report(folders, out)
    return out.read_text(encoding="utf-8")


def test_the_page_asks_for_nothing_and_runs_one_script(tmp_path: Path) -> None:
    read = Reader(page_of(write_run(tmp_path / "a"), write_run(tmp_path / "b", method="flyp")))
    addresses = [
        (tag, value) for tag, attrs in read.tags for key, value in attrs.items() if key in ("src", "href")
    ]
    assert addresses == [("a", "#main")]
    assert not [tag for tag, attrs in read.tags if any(key.startswith("on") for key in attrs)]
    kinds = [attrs.get("type") for tag, attrs in read.tags if tag == "script"]
    assert kinds == ["application/json", None]
    assert len(set(read.ids)) == len(read.ids)
    named = {value for _, attrs in read.tags for key, value in attrs.items() if key == "aria-labelledby"}
    assert {name for value in named if value for name in value.split()} <= set(read.ids)


def test_hostile_names_are_text(tmp_path: Path) -> None:
    quiet = Reader(page_of(write_run(tmp_path / "quiet" / "x")))
    folder = write_run(
        tmp_path / "loud" / "<b>x", data=HOSTILE, retain=HOSTILE, classes=(HOSTILE, "b"), model=HOSTILE
    )
    html = page_of(folder)
    loud = Reader(html)
    assert [tag for tag, _ in loud.tags] == [tag for tag, _ in quiet.tags]
    assert "<script>x()" not in html
    assert "<b>x" in loud.text
    assert HOSTILE.split("\n")[0] in loud.text


def test_embedded_data_survive_and_cannot_end_their_element() -> None:
    value = {"a": HOSTILE, "b": [1.5, None, "\u2028"]}
    text = str(embedded(value))
    assert json.loads(text) == value
    assert not set("<>&") & set(text)
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded({"a": float("nan")})


def test_names_that_no_encoding_holds_are_replaced(tmp_path: Path) -> None:
    html = page_of(write_run(tmp_path / "a", classes=("null \x00", "lone \udcff")))
    assert "null ␀" in html
    assert "lone ?" in html


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "experiment.json").write_text("nonsense")
    unfinished = write_run(tmp_path / "half", seed=1, finished=False)
    text = Reader(page_of(write_run(tmp_path / "a"), unfinished, tmp_path / "broken")).text
    assert "broken: experiment.json is not readable" in text
    assert "not finished: step 20 of 20" in text


def test_what_many_runs_say_is_said_once(tmp_path: Path) -> None:
    """A remark that runs share names them all in one line, and many remarks wait behind a summary."""
    folders = [write_run(tmp_path / f"run{seed}", seed=seed) for seed in range(4)]
    for i, folder in enumerate(folders):
        result = json.loads((folder / "result.json").read_text())
        result["warnings"] = ["to keep more: a lower --lr", *([f"fell to {i} %"] if i < 3 else [])]
        (folder / "result.json").write_text(json.dumps(result))
    html = page_of(*folders)
    assert Reader(html).text.count("to keep more") == 1
    assert "All runs: to keep more" in Reader(html).text
    assert "4 remarks on the runs" in html
    few = page_of(folders[3])
    assert "remarks on the runs" not in few
    assert "to keep more" in few


def test_nothing_readable_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "experiment.json").write_text("nonsense")
    with pytest.raises(UserError, match="no run can be read"):
        read_page([tmp_path])


def test_many_long_runs_stay_under_five_megabytes(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / str(i), options={"beta": 0.1 + i / 100}, steps=4000) for i in range(24)]
    out = tmp_path / "report.html"
    page = write_report(folders, out)
    assert out.stat().st_size < 5e6
    loss = next(chart for chart in page.charts if chart.name == "g1-loss")
    assert len(loss.series[0].points) == 2000, "the figure itself keeps every point"


def test_an_ablation_becomes_a_curve_with_seeds(tmp_path: Path) -> None:
    folders = [
        write_run(
            tmp_path / f"{beta}-{seed}", options={"beta": beta}, seed=seed, accuracy=(0.5, beta + seed / 100)
        )
        for beta in (0.2, 0.5, 0.7)
        for seed in (0, 1)
    ]
    charts = {chart.name: chart for chart in read_page(folders).charts}
    (series,) = charts["g1-TRACER-beta-accuracy"].series
    assert [point.x for point in series.points] == [0.2, 0.5, 0.7]
    assert [point.y for point in series.points] == pytest.approx([0.205, 0.505, 0.705])
    assert all(point.low is not None and point.low < point.y for point in series.points)


def test_the_command_writes_page_and_figures(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    assert cli.main(["report", str(folder), "--figures", str(tmp_path / "figures")]) == 0
    assert (folder / "report.html").is_file()
    stems = {file.stem for file in (tmp_path / "figures").iterdir()}
    assert {"g1-frontier", "g1-loss", "g1-accuracy", "g1-kl"} <= stems
    assert cli.main(["report", str(tmp_path / "nowhere")]) == 2


def test_the_command_shown_is_the_experiment(tmp_path: Path) -> None:
    """Parse the line that the page shows with the real parser, and compare what would run."""
    options = {"beta": 0.3, "targets": "pair"}
    run = read_run(write_run(tmp_path / "it's here", options=options, clip=1.0, seed=3))
    experiment, _ = training_command.requested(shlex.split(training(run))[2:])
    for name, value in run.experiment.items():
        if name not in ("options", "retain"):
            assert getattr(experiment, name) == value, name
    assert experiment.retain == tuple(run.experiment["retain"])
    assert {name: experiment.options[name] for name in options} == options


def test_each_number_has_a_command(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "a b"))
    lines = {command.gives: command.line for command in commands(run)}
    retained = f"tracer eval '{run.folder}' --data retain=digits"
    assert lines["accuracy on digits, before and after"] == retained
    assert "task accuracy, before and after" in lines
    assert shlex.split(lines["the whole run, with all its numbers"])[-2:] == ["--out", f"{run.folder}-again"]


def test_each_test_set_has_a_command_with_its_role(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a")
    write_scores(run, {"digits:coloured": ("id", 0.9), str(tmp_path): ("ood", 0.5)})
    lines = {command.gives: command.line for command in commands(read_run(run))}
    asked = shlex.join(["tracer", "eval", str(run), "--data", "id=digits:coloured", f"ood={tmp_path}"])
    assert lines["every test set, before and after"] == asked


def test_test_sets_are_measured_again_by_the_commands_that_gave_them(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a")
    source = {"suite": "imagenet", "root": "my sets"}
    for name in ("V2", "R", "A", "Sketch"):
        write_answers(run, "result", name, "ood", {"accuracy": 0.9}, source=source)
    lines = {command.gives: command.line for command in commands(read_run(run))}
    again = shlex.join(["tracer", "eval", str(run), "--suite", "imagenet", "--root", "my sets"])
    assert lines["every test set, before and after"] == again
    own = {"data": "own.csv", "options": {"label": "kind"}, "command": {"label_column": "kind"}}
    write_answers(run, "result", "own", "id", {"accuracy": 0.9}, source=own)
    lines = {command.gives: command.line for command in commands(read_run(run))}
    assert lines["V2, R, A and 1 more, before and after"] == again
    words = ["tracer", "eval", str(run), "--data", "id=own.csv", "--label-column", "kind"]
    assert lines["own, before and after"] == shlex.join(words)


def test_a_run_that_held_out_a_part_of_its_data_can_be_measured_on_that_part_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Follow what the page says, and find the headline's two numbers."""
    for shade in range(0, 250, 50):
        (tmp_path / "photos" / str(shade)).mkdir(parents=True)
        for i in range(6):
            Image.new("RGB", (28, 28), (shade, shade, 40 * i)).save(
                tmp_path / "photos" / str(shade) / f"{i}.png"
            )
    (tmp_path / "nano.json").write_text(json.dumps(NANO))
    small = [
        "--model",
        str(tmp_path / "nano.json"),
        "--pretrained",
        "none",
        "--augment",
        "none",
        "--lr",
        "3e-3",
    ]
    asked = ["train", "--data", str(tmp_path / "photos"), *small, "--steps", "8", "--templates", "name"]
    assert cli.main([*asked, "--out", str(tmp_path / "run")]) == 0
    run = read_run(tmp_path / "run")
    assert run.result is not None
    wanted = run.result["before"]["accuracy"], run.result["after"]["accuracy"]
    lines = {command.gives: command.line for command in commands(run)}
    (analysis,) = (line for gives, line in lines.items() if "task accuracy before" in gives)
    for line in (analysis, lines["the whole run, with all its numbers"]):
        assert cli.main(shlex.split(line)[1:]) == 0
    path = json.loads((tmp_path / "run" / "analysis.json").read_text())["path"]
    assert (path[0]["accuracy"], path[-1]["accuracy"]) == wanted
    again = read_run(tmp_path / "run-again").result
    assert again is not None
    assert (again["before"]["accuracy"], again["after"]["accuracy"]) == wanted


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_colour_can_be_read_on_its_paper() -> None:
    """Text and the names of settings have the contrast of 4.5 that WCAG 2 asks for, in every theme."""
    style = "".join((HERE / f"{name}.css").read_text(encoding="utf-8") for name in ("chart", "page"))
    themes = [
        dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))
        for block in re.findall(r"\{([^{}]*--s7: #[^{}]*)", style)
    ]
    assert len(themes) == 4
    for theme in themes:
        paper = _luminance(theme.get("paper", "#ffffff"))
        for name in ("ink", "soft", "base", *(f"s{i}" for i in range(8))):
            if name in theme:
                lighter, darker = sorted((paper, _luminance(theme[name])), reverse=True)
                assert (lighter + 0.05) / (darker + 0.05) >= 4.5, f"{name} {theme[name]}"
