from __future__ import annotations

import json
import re
import tarfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import LineCollection

from tracer import figure, outcome
from tracer.commands.toy import main as command
from tracer.data import digits as embedded
from tracer.data.sources import load
from tracer.errors import UserError
from tracer.method import method
from tracer.model import read_weights
from tracer.origin import commit
from tracer.run import Run
from tracer.toy import figures, table
from tracer.toy.files import read_comparison, read_teachers, write_comparison, write_teachers
from tracer.toy.frontier import Row, best, curve, forgetting, front, learned, points
from tracer.toy.mnist import FIRST, located
from tracer.toy.published import PUBLISHED
from tracer.toy.strategies import STRATEGIES, Variant, variants
from tracer.toy.study import Found, Scale, Setting, finetuned, pretrained, study
from tracer.toy.teaching import LATER, PROBES, Curves, shape, teachers

EVIDENCE = Path(__file__).parents[1] / "evidence" / "toy"


def row(strategy: str, strength: float | None, task: float, original: float, seed: int = 0) -> Row:
    return Row(strategy, strength, seed, task, original, 0.95 - original, 0.3, 0.2, 0.1, 0.05)


@pytest.fixture
def rows() -> list[Row]:
    """Two seeds; static learns the task at λ = 1 only, L2 at no λ."""
    first = [
        row("pretrained", None, 0.5, 0.95),
        row("direct", None, 1.0, 0.6),
        row("l2", 0.1, 0.97, 0.7),
        row("l2", 10, 0.9, 0.8),
        row("static", 10, 0.8, 0.94),
        row("static", 1, 0.995, 0.9),
        row("dynamic", 10, 1.0, 0.93),
    ]
    second = [row(r.strategy, r.strength, r.task, r.original - 0.02, seed=1) for r in first]
    return first + second


# The frontier


def test_forgetting_is_the_paper_s_difference_not_a_ratio():
    told = PUBLISHED["direct"]
    before = PUBLISHED["pretrained"].original
    assert before is not None
    assert told.original is not None
    assert forgetting(before, told.original) == pytest.approx(told.forgotten, abs=0.0011)  # as printed
    assert forgetting(before, told.original) / before > told.forgotten + 0.01


def test_points_average_over_seeds_and_nothing_else(rows):
    found = points(rows)
    assert len(found) == 7
    (static,) = [p for p in found if (p.strategy, p.strength) == ("static", 1)]
    assert static.mean("original") == pytest.approx(0.89)
    assert static.spread["original"].std == pytest.approx(0.02 / 2**0.5)
    assert static.spread["original"].seeds == 2
    assert static.spread["task"].std == pytest.approx(0)


def test_curves_go_from_weak_to_strong(rows):
    assert [p.strength for p in curve(points(rows), "static")] == [1, 10]


def test_best_keeps_most_among_those_that_learn(rows):
    found = points(rows)
    assert learned(found) == pytest.approx(0.99)
    assert best(found, "static").strength == 1  # λ = 10 keeps more and does not learn
    assert best(found, "l2").strength == 0.1  # none learns: the one that learns most
    assert best(found, "direct").strength is None


def test_front_of_a_known_case(rows):
    names = {(p.strategy, p.strength) for p in front(points(rows))}
    assert names == {("pretrained", None), ("static", 10), ("dynamic", 10)}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20))
def test_front_is_what_cannot_be_bettered(pairs):
    found = points([row("x", float(i), a / 5, b / 5) for i, (a, b) in enumerate(pairs)])
    kept = {p.strength for p in front(found)}
    assert kept
    for i, (a, b) in enumerate(pairs):
        bettered = any(c >= a and d >= b and (c, d) != (a, b) for c, d in pairs)
        assert (i in kept) == (not bettered)


# Strategies


def test_every_variant_is_a_method_of_the_library_on_the_image_tower(rows):
    for variant in variants(frontier=True):
        (stage,) = method(variant.method, **variant.options).stages
        assert type(stage.tune).__name__ == "ImageTower"
    names = [variant.name for variant in variants(frontier=True)]
    assert len(names) == len(set(names))
    quick = {variant.name for variant in variants(frontier=False)}
    assert quick < set(names)
    assert {variant.strategy for variant in variants(frontier=False)} == set(STRATEGIES)


def test_without_the_frontier_each_strategy_has_two_strengths_one_of_them_the_best_known():
    found = points(read_comparison(EVIDENCE / "colour.json").rows)
    for name, strategy in STRATEGIES.items():
        tried = [variant.strength for variant in variants(frontier=False) if variant.strategy == name]
        assert len(tried) == (2 if strategy.strengths else 1)
        assert best(found, name).strength in tried


def test_help_calls_the_groups_as_the_captions_do(capsys):
    with pytest.raises(SystemExit):
        command(["--help"])
    told = " ".join(re.sub(r"[│\n]", " ", capsys.readouterr().out).split())
    low, high = embedded.GROUPS
    assert f"by their colour, or {low} (0 to 4) and {high} (5 to 9)" in told


@pytest.mark.parametrize("name", ["static", "ema", "dynamic"])
def test_without_strength_distillation_minimises_the_contrastive_loss_alone(name):
    strategy = STRATEGIES[name]
    (stage,) = method(strategy.method, **{**strategy.options, "strength": 0.0}).stages
    assert stage.objective.needs == {"text"}
    assert repr(stage.objective) == "contrastive"


def test_teachers_differ_and_are_methods_with_intervals_in_steps():
    asked = list(teachers(500))
    assert len({folder for _, folder, _, _ in asked}) == len(asked)
    policies = [method(name, **options).stages[0].policy(500) for _, _, name, options in asked]
    assert len({repr(policy) for policy in policies}) == len(asked)
    assert {policy.every for policy in policies if policy} == {1, 10, 100}


# End to end: two steps a method


TINY = Scale(pretraining=2, pretraining_batch=8, steps=2, batch=8, teaching=4, teaching_batch=8)


@pytest.fixture
def few(monkeypatch):
    """Digits enough for a batch or two, and few names to compare by, so that evaluation takes no time."""
    whole = embedded._grey
    monkeypatch.setattr(outcome.open_clip, "IMAGENET_CLASSNAMES", ["tench", "goldfish"])

    def some(split, folder):
        grey, labels = whole(split, folder)
        return grey[:40], labels[:40]

    monkeypatch.setattr(embedded, "_grey", some)


def watch(plan, reports) -> None:
    for _ in reports:
        pass


def test_study_runs_reads_what_is_finished_and_zero_strength_is_direct(few, tmp_path):
    setting = Setting(tmp_path, watch, scale=TINY)
    chosen = list({variant.strategy: variant for variant in variants(frontier=False)}.values())
    found = list(study(setting, chosen, [0]))
    assert [r.strategy for r in found] == ["pretrained", *(variant.strategy for variant in chosen)]
    assert found[0].forgotten == 0
    assert all(r.forgotten == pytest.approx(found[0].original - r.original) for r in found)

    folder = tmp_path / "seed-0" / "colour"
    assert not list(folder.glob("*/resume"))
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*.safetensors")}
    assert list(study(setting, chosen, [0])) == found
    assert before == {file: file.stat().st_mtime_ns for file in folder.rglob("*.safetensors")}

    idle = Variant("static", 0.0, "static_sd", {"preset": "feature", "strength": 0.0, "tune": "image"})
    model = pretrained(setting, seed=0)
    finetuned(setting, idle, model, seed=0)
    direct, static = (
        read_weights(Run(folder / name).weights_file("result")) for name in ("direct", "static-0")
    )
    start = Run(folder / "direct").student("pretrained").state_dict()
    assert all(torch.equal(direct[name], static[name]) for name in direct)
    moved = {name for name in direct if not torch.equal(direct[name], start[name])}
    assert moved
    assert all(name.startswith("clip.visual.") for name in moved)  # text and temperature stay

    other = Setting(tmp_path, watch, scale=Scale(pretraining=3, pretraining_batch=8, steps=2, batch=8))
    with pytest.raises(UserError, match="another experiment"):
        pretrained(other, seed=0)


def test_painted_digits_of_a_folder_are_those_of_its_idx_files(monkeypatch):
    seen = []

    def arrays(folder, split):
        seen.append((str(folder), split))
        return np.full((10, 28, 28), 7, np.uint8), np.arange(10, dtype=np.uint8)

    monkeypatch.setattr(embedded, "arrays", arrays)
    embedded._grey.cache_clear()
    painted = load("digits:group@some/folder", split="test")
    embedded._grey.cache_clear()
    assert seen == [("some/folder", "test")]
    assert painted.labels.tolist() == [0] * 5 + [1] * 5
    assert painted.name == "digits:group@some/folder"
    with pytest.raises(UserError, match=r"did you mean .*digits:group"):
        load("digits:grup@some/folder")


# All of MNIST


def test_mnist_is_found_in_a_folder_and_in_an_archive(tmp_path):
    inner = tmp_path / "MNIST" / "raw"
    inner.mkdir(parents=True)
    with pytest.raises(UserError, match="holds no train-images"):
        located(tmp_path, tmp_path / "unpacked")
    (inner / f"{FIRST}.gz").write_bytes(b"content")
    assert located(tmp_path, tmp_path / "unpacked") == inner
    with tarfile.open(tmp_path / "mnist.tar.gz", "w:gz") as archive:
        archive.add(inner, "raw")
    found = located(tmp_path / "mnist.tar.gz", tmp_path / "unpacked")
    assert found == tmp_path / "unpacked" / "raw"
    assert (found / f"{FIRST}.gz").read_bytes() == b"content"


def test_what_is_no_archive_is_named(tmp_path):
    (tmp_path / "mnist.tar.gz").write_bytes(b"no archive")
    with pytest.raises(UserError, match=r"mnist\.tar\.gz is no archive"):
        located(tmp_path / "mnist.tar.gz", tmp_path / "unpacked")


# Teachers


def made(values: list[float]) -> Curves:
    time = [(i + 1) / len(values) for i in range(len(values))]
    return Curves(time, dict.fromkeys(PROBES, values), time[::5], values[::5])


def test_shape_has_no_scale():
    values = [*np.linspace(0, 1, 5), *np.linspace(1, 0.2, 95)]
    one, ten = shape(made(values)), shape(made([10 * value for value in values]))
    assert one.at == ten.at
    assert 0.03 <= one.at <= 0.07
    assert ten.peak == pytest.approx(10 * one.peak)
    assert [ten.left[share] for share in LATER] == pytest.approx([one.left[share] for share in LATER])
    assert one.left[1.0] < one.left[0.9] < one.left[0.5] < one.left[0.1] <= 1


# What is written


@pytest.fixture(autouse=True)
def one_format(monkeypatch):
    monkeypatch.setattr(figure, "FORMATS", ("svg",))


def says_where_it_is_from(file: Path, command: str) -> None:
    told = json.loads(file.read_text())
    assert told["command"] == command
    assert datetime.fromisoformat(told["date"]).date() <= datetime.now(UTC).date()
    assert told["versions"]["torch"] == torch.__version__
    assert told.get("commit") == commit()


def test_files_hold_the_rows_and_figures_are_drawn(rows, tmp_path):
    found = Found("colour", "embedded digits", Scale(), rows)
    told = write_comparison(found, tmp_path, "tracer toy --seeds 2")
    assert read_comparison(tmp_path / "toy-colour.json") == found
    says_where_it_is_from(tmp_path / "toy-colour.json", "tracer toy --seeds 2")
    assert (tmp_path / "toy-colour.txt").read_text() == told
    lines = (tmp_path / "toy-colour.csv").read_text().splitlines()
    assert lines[0].split(",") == list(asdict(rows[0]))
    assert len(lines) == 1 + len(rows)
    for name in ("toy-colour", "toy-colour-frontier"):
        assert (tmp_path / f"{name}.svg").stat().st_size > 0


@pytest.fixture(params=["colour", "group"])
def published(request):
    """A study as it stands in the repository."""
    return read_comparison(EVIDENCE / f"{request.param}.json")


@pytest.mark.parametrize("draw", [figures.outcome, figures.frontier])
def test_axes_are_named_and_legends_hide_no_mark(published, draw):
    drawn = draw(published)
    drawn.draw_without_rendering()
    for axes in drawn.axes:
        assert axes.get_ylabel()
        assert axes.get_xlabel() or all(label.get_text() for label in axes.get_xticklabels())
        if legend := axes.get_legend():
            box = legend.get_window_extent()
            for line in axes.get_lines():
                places = axes.transData.transform(np.array(line.get_xydata(), float).reshape(-1, 2))
                assert not any(box.contains(*place) for place in places), line.get_label()


def test_marks_of_the_trade_off_lie_apart_and_numbers_beside_their_bars(published):
    drawn = figures.outcome(published)
    drawn.draw_without_rendering()
    _, forgetting_, trade = drawn.axes
    marks = [
        trade.transData.transform(line.get_xydata())[0]
        for line in trade.get_lines()
        if not str(line.get_label()).startswith("_")
    ]
    apart = [np.linalg.norm(a - b) for i, a in enumerate(marks) for b in marks[:i]]
    assert len(marks) == 1 + len(STRATEGIES)
    assert min(apart) > 8 or published.task == "group"  # direct and L2 at its weakest λ are one there
    bars = [bar for bar in forgetting_.collections if isinstance(bar, LineCollection)]
    ends = [end for bar in bars for end in forgetting_.transData.transform(bar.get_segments()[0])]
    assert len(bars) == len(STRATEGIES)
    numbers = [number.get_window_extent() for number in forgetting_.texts]
    assert len(numbers) == len(STRATEGIES)
    assert not any(number.contains(*end) for number in numbers for end in ends)
    assert not any(a.overlaps(b) for i, a in enumerate(numbers) for b in numbers[:i])


def test_table_shows_means_stars_and_the_paper(rows):
    lines = table.text(rows).splitlines()
    static = next(line for line in lines if line.startswith("static FD") and " * 1 " in line)
    assert "89.0 ± 1.4" in static
    assert static.endswith("1.8")
    assert len([line for line in lines if " * " in line]) == 3  # one λ of L2, static and WMA each
    assert len({len(line) for line in lines if line.endswith(("1.8", "13.6"))}) == 1


def test_teachers_are_written_and_read(tmp_path):
    runs = {title: made([0.1, 0.3, 0.2, *([0.1] * 47)]) for title, *_ in teachers(500)}
    told = write_teachers(runs, tmp_path, "tracer toy --teachers")
    says_where_it_is_from(tmp_path / "toy-teachers.json", "tracer toy --teachers")
    assert read_teachers(tmp_path / "toy-teachers.json") == runs
    assert told.count("\n") == 1 + len(runs)
    assert {file.stem for file in tmp_path.glob("*.svg")} == {
        f"toy-{name}" for name in figures.teachers(runs)
    }
    assert json.loads((tmp_path / "toy-teachers.json").read_text())["teachers"].keys() == runs.keys()
