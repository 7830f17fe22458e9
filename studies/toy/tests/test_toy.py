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
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from studies import figure
from studies.toy import figures, mnist, table
from studies.toy.command import main as command
from studies.toy.files import read_comparison, read_teachers, show, write_comparison, write_teachers
from studies.toy.frontier import Row, best, curve, forgetting, front, learned, points, star
from studies.toy.mnist import NAMES, find_mnist
from studies.toy.published import PUBLISHED, reported
from studies.toy.strategies import STRATEGIES, Variant, variants
from studies.toy.study import Results, Scale, Setting, Task, finetuned, pretrained, study, teacher_curves
from studies.toy.teaching import LATER, PROBES, Curves, curves, shape, teachers
from tracer.core.errors import UserError
from tracer.data.embedded import digits as embedded
from tracer.data.sources import load
from tracer.evaluation import measured as outcome
from tracer.methods.base import method
from tracer.models.student import read_weights
from tracer.runs.record import Recorder
from tracer.runs.run import Run
from tracer.storage.provenance import commit

EVIDENCE = Path(__file__).parents[1] / "results"


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
    direct = PUBLISHED["direct"]
    before = PUBLISHED["pretrained"].original
    assert before is not None
    assert direct.original is not None
    assert forgetting(before, direct.original) == pytest.approx(direct.forgotten, abs=0.0011)  # as printed
    assert forgetting(before, direct.original) / before > direct.forgotten + 0.01


def test_points_average_over_seeds_and_nothing_else(rows):
    averaged = points(rows)
    assert len(averaged) == 7
    (static,) = [p for p in averaged if (p.strategy, p.strength) == ("static", 1)]
    assert static.mean("original") == pytest.approx(0.89)
    assert static.spread["original"].std == pytest.approx(0.02 / 2**0.5)
    assert static.spread["original"].seeds == 2
    assert static.spread["task"].std == pytest.approx(0)


def test_curves_go_from_weak_to_strong(rows):
    assert [p.strength for p in curve(points(rows), "static")] == [1, 10]


def test_best_keeps_most_among_those_that_learn(rows):
    averaged = points(rows)
    assert learned(averaged) == pytest.approx(0.99)
    assert best(averaged, "static").strength == 1  # λ = 10 keeps more and does not learn
    assert best(averaged, "l2").strength == 0.1  # none learns: the one that learns most
    assert best(averaged, "direct").strength is None


def test_a_star_is_in_brackets_where_no_strength_learns(rows):
    averaged = points(rows)
    marked = {(p.strategy, p.strength): star(averaged, p) for p in averaged if star(averaged, p)}
    assert marked == {("l2", 0.1): "(*)", ("static", 1): "*", ("dynamic", 10): "*"}


def test_front_of_a_known_case(rows):
    names = {(p.strategy, p.strength) for p in front(points(rows))}
    assert names == {("pretrained", None), ("static", 10), ("dynamic", 10)}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20))
def test_front_is_what_cannot_be_bettered(pairs):
    averaged = points([row("x", float(i), a / 5, b / 5) for i, (a, b) in enumerate(pairs)])
    unbeaten = {p.strength for p in front(averaged)}
    assert unbeaten
    for i, (a, b) in enumerate(pairs):
        bettered = any(c >= a and d >= b and (c, d) != (a, b) for c, d in pairs)
        assert (i in unbeaten) == (not bettered)


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
    averaged = points(read_comparison(EVIDENCE / "colour.json").rows)
    for name, strategy in STRATEGIES.items():
        tried = [variant.strength for variant in variants(frontier=False) if variant.strategy == name]
        assert len(tried) == (2 if strategy.strengths else 1)
        assert best(averaged, name).strength in tried


def test_help_calls_the_groups_as_the_captions_do(capsys):
    with pytest.raises(SystemExit):
        command(["--help"])
    help_text = " ".join(re.sub(r"[│\n]", " ", capsys.readouterr().out).split())
    low, high = embedded.GROUPS
    assert f"by their colour, or {low} (0 to 4) and {high} (5 to 9)" in help_text


@pytest.mark.parametrize("name", ["static", "ema", "dynamic"])
def test_without_strength_distillation_minimises_the_contrastive_loss_alone(name):
    strategy = STRATEGIES[name]
    (stage,) = method(strategy.method, **{**strategy.options, "strength": 0.0}).stages
    assert stage.objective.needs == {"text"}
    assert repr(stage.objective) == "contrastive"


def test_teachers_differ_and_are_methods_with_intervals_in_steps():
    runs = list(teachers(500))
    assert len({folder for _, folder, _, _ in runs}) == len(runs)
    policies = [method(name, **options).stages[0].policy(500) for _, _, name, options in runs]
    assert len({repr(policy) for policy in policies}) == len(runs)
    assert {policy.every for policy in policies if policy} == {1, 10, 100}


# End to end: two steps a method


TINY = Scale(pretraining=2, pretraining_batch=8, steps=2, batch=8, teaching=4, teaching_batch=8)


@pytest.fixture
def few(monkeypatch):
    """Digits enough for a batch or two, and few names to compare by, so that evaluation takes no time."""
    whole = embedded._grey
    monkeypatch.setattr(outcome, "known_names", lambda: ("tench", "goldfish"))

    def some(split, folder):
        grey, labels = whole(split, folder)
        return grey[:40], labels[:40]

    monkeypatch.setattr(embedded, "_grey", some)


def test_study_runs_reads_what_is_finished_and_zero_strength_is_direct(few, tmp_path):
    setting = Setting(tmp_path, scale=TINY)
    chosen = list({variant.strategy: variant for variant in variants(frontier=False)}.values())
    rows = list(study(setting, chosen, [0]))
    assert [r.strategy for r in rows] == ["pretrained", *(variant.strategy for variant in chosen)]
    assert rows[0].forgotten == 0
    assert all(r.forgotten == pytest.approx(rows[0].original - r.original) for r in rows)

    folder = tmp_path / "seed-0" / "colour"
    assert not list(folder.glob("*/resume"))
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*.safetensors")}
    assert list(study(setting, chosen, [0])) == rows
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

    other = Setting(tmp_path, scale=Scale(pretraining=3, pretraining_batch=8, steps=2, batch=8))
    with pytest.raises(UserError, match="another experiment"):
        pretrained(other, seed=0)


def test_teachers_of_both_tasks_lie_side_by_side(few, tmp_path, monkeypatch):
    one = next(teachers(TINY.teaching))
    monkeypatch.setattr("studies.toy.study.teachers", lambda steps: [one])
    tasks: tuple[Task, ...] = ("colour", "group")
    for task in tasks:
        list(teacher_curves(Setting(tmp_path, task, TINY), seed=0))
        assert Run(tmp_path / "seed-0" / task / "teaching" / "ema").finished
        write_teachers({"WMA β = 0.5": curves_of([0.1] * 50)}, task, tmp_path, f"--task {task}")
    files = [
        json.loads((tmp_path / f"toy-{name}.json").read_text()) for name in ("teachers", "group-teachers")
    ]
    assert [each["task"] for each in files] == ["colour", "group"]
    drawn = {file.stem for file in tmp_path.glob("*.svg")}
    assert drawn == {
        f"toy-{task}{each}" for task in ("", "group-") for each in ("kernels", "clocks", "shapes")
    }


def test_painted_digits_of_a_folder_are_those_of_its_idx_files(monkeypatch):
    calls = []

    def arrays(folder, split):
        calls.append((str(folder), split))
        return np.full((10, 28, 28), 7, np.uint8), np.arange(10, dtype=np.uint8)

    monkeypatch.setattr(embedded, "arrays", arrays)
    embedded._grey.cache_clear()
    painted = load("digits:group@some/folder", split="test")
    embedded._grey.cache_clear()
    assert calls == [("some/folder", "test")]
    assert painted.labels.tolist() == [0] * 5 + [1] * 5
    assert painted.name == "digits:group@some/folder"
    with pytest.raises(UserError, match=r"did you mean .*digits:group"):
        load("digits:grup@some/folder")


# All of MNIST


def test_mnist_is_found_in_a_folder_and_in_an_archive(tmp_path):
    inner = tmp_path / "MNIST" / "raw"
    hold(inner)
    assert find_mnist(tmp_path, tmp_path / "unpacked") == inner
    with tarfile.open(tmp_path / "mnist.tar.gz", "w:gz") as archive:
        archive.add(inner, "raw")
    folder = find_mnist(tmp_path / "mnist.tar.gz", tmp_path / "unpacked")
    assert folder == tmp_path / "unpacked" / "raw"
    assert (folder / f"{NAMES[0]}.gz").read_bytes() == b"content"


def hold(folder: Path, names: list[str] = NAMES) -> None:
    """Put files of MNIST into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.gz").write_bytes(b"content")


@pytest.fixture
def network(monkeypatch):
    """A network that has the files; the folders it was asked for."""
    folders = []

    def download(folder):
        folders.append(folder)
        hold(folder / "MNIST" / "raw")

    monkeypatch.setattr(mnist, "_download", download)
    return folders


@pytest.mark.parametrize("left", ["nothing", "an empty folder", "a stopped download", "other files"])
def test_mnist_is_downloaded_where_none_of_it_is(network, tmp_path, left):
    path = tmp_path / "mnist"
    if left != "nothing":
        path.mkdir()
    if left == "a stopped download":
        hold(path / "MNIST" / "raw", NAMES[:1])
    if left == "other files":
        (path / "notes.txt").write_text("mine")
    for _ in range(2):
        assert find_mnist(path, tmp_path / "unpacked") == path / "MNIST" / "raw"
    assert network == [path]  # the second time it is there
    assert (path / "notes.txt").exists() == (left == "other files")


def test_some_files_of_mnist_are_not_enough_and_are_left_alone(network, tmp_path):
    hold(tmp_path / "mine", NAMES[:2])
    with pytest.raises(
        UserError, match=rf"--full .*mine holds {NAMES[0]}, {NAMES[1]}; expected: .*{NAMES[3]}"
    ):
        find_mnist(tmp_path / "mine", tmp_path / "unpacked")
    assert not network


def test_a_download_that_fails_names_the_flag_and_removes_only_what_it_made(monkeypatch, tmp_path):
    def unreachable(folder, download):
        (folder / "MNIST" / "raw").mkdir(parents=True)
        raise RuntimeError("no network")

    monkeypatch.setattr("torchvision.datasets.MNIST", unreachable)
    (tmp_path / "old").mkdir()
    for name in ("old", "new"):
        with pytest.raises(
            UserError, match=rf"--full .*{name} .*no network.*expected: a folder or an archive"
        ):
            find_mnist(tmp_path / name, tmp_path / "unpacked")
    assert (tmp_path / "old").exists()
    assert not (tmp_path / "new").exists()


def test_what_is_no_archive_is_named(tmp_path):
    (tmp_path / "mnist.tar.gz").write_bytes(b"no archive")
    with pytest.raises(UserError, match=r"--full .*mnist\.tar\.gz is no archive.*expected: a folder or"):
        find_mnist(tmp_path / "mnist.tar.gz", tmp_path / "unpacked")


# Teachers


def curves_of(values: list[float]) -> Curves:
    time = [(i + 1) / len(values) for i in range(len(values))]
    return Curves(time, dict.fromkeys(PROBES, values), time[::5], values[::5])


def test_small_values_of_a_log_survive(tmp_path, monkeypatch):
    monkeypatch.setattr(Run, "description", {"steps": 2})
    log = Recorder(tmp_path / "log.jsonl")
    for step, kl in ((1, 0.123456789), (2, 7.284620551e-08)):
        log.log(step, "train", **{**dict.fromkeys(PROBES, 1.0), "kl": kl})
        log.log(step, "held_out", weight_gap=kl)
    logged = curves(Run(tmp_path))
    assert logged.probes["kl"] == logged.gap == [0.123457, 7.28462e-08]


def test_shape_has_no_scale():
    values = [*np.linspace(0, 1, 5), *np.linspace(1, 0.2, 95)]
    one, ten = shape(curves_of(values)), shape(curves_of([10 * value for value in values]))
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
    content = json.loads(file.read_text())
    assert content["command"] == command
    assert datetime.fromisoformat(content["date"]).date() <= datetime.now(UTC).date()
    assert content["versions"]["torch"] == torch.__version__
    assert content.get("commit") == commit()


def test_files_hold_the_rows_and_figures_are_drawn(rows, tmp_path):
    results = Results("colour", "embedded digits", Scale(), rows)
    text = write_comparison(results, tmp_path, "tracer toy --seeds 2")
    assert read_comparison(tmp_path / "toy-colour.json") == results
    says_where_it_is_from(tmp_path / "toy-colour.json", "tracer toy --seeds 2")
    assert (tmp_path / "toy-colour.txt").read_text() == text
    lines = (tmp_path / "toy-colour.csv").read_text().splitlines()
    assert lines[0].split(",") == list(asdict(rows[0]))
    assert len(lines) == 1 + len(rows)
    assert (tmp_path / "toy-colour.md").read_text() == table.markdown(results)
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


def test_marks_of_two_strategies_are_never_alike():
    looks = {(figures.COLOURS[name], figures.MARKS[name]) for name in figures.COLOURS}
    assert len(set(figures.MARKS.values())) == len(looks) == len(figures.COLOURS)
    assert figures.GREY not in figures.COLOURS.values()  # beside green it is no colour of its own


def test_names_below_the_axes_do_not_touch(published):
    drawn = figures.outcome(published)
    drawn.draw_without_rendering()
    for axes in drawn.axes[:2]:
        boxes = [unturned(label) for label in axes.get_xticklabels()]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def unturned(label: Text) -> Bbox:
    """Where a slanted text lies if the page is turned so that it is level."""
    angle, slanted = np.deg2rad(label.get_rotation()), label.get_window_extent()
    label.set_rotation(0)
    level = label.get_window_extent()
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    x, y = turn @ [(slanted.x0 + slanted.x1) / 2, (slanted.y0 + slanted.y1) / 2]
    return Bbox.from_bounds(x - level.width / 2, y - level.height / 2, level.width, level.height)


def test_a_teacher_looks_the_same_in_all_figures_and_like_no_other_in_one():
    runs = read_teachers(EVIDENCE / "teachers.json")
    looks: dict[str, set[tuple[str, str]]] = {}
    for drawn in figures.teachers(runs).values():
        (legend,) = [each for axes in drawn.axes if (each := axes.get_legend())]
        here = {}
        for line, text in zip(legend.get_lines(), legend.get_texts(), strict=True):
            here[text.get_text()] = (str(line.get_color()), str(vars(line)["_dash_pattern"]))
        assert len({colour for colour, _ in here.values()}) == len(here)
        for name, look in here.items():
            looks.setdefault(name, set()).add(look)
    assert looks.keys() == runs.keys() == figures.TEACHERS.keys()
    assert all(len(each) == 1 for each in looks.values()), looks


def test_curves_of_agreement_end_where_nothing_more_happens():
    runs = {"EMA, every step": curves_of([0.5, 1.0, 1.0, 1.0]), "WMA β = 1": curves_of([1.0] * 4)}
    panel = figures.teaching(runs, "teacher").axes[3]
    assert "agreement" in panel.get_ylabel()
    curve_, dot, other, upon = panel.get_lines()
    assert np.array(curve_.get_xdata()).tolist() == [25, 50]
    assert np.array(other.get_xdata()).tolist() == [25]
    assert (dot.get_xdata(), upon.get_xdata()) == ([50], [25])


def test_the_paper_and_a_strategy_that_never_learns_are_marked_in_the_figure(rows):
    def words(task: Task) -> list[str]:
        drawn = figures.outcome(Results(task, "embedded digits", Scale(), rows))
        texts = [text.get_text() for text in drawn.findobj(Text)]
        return [text.replace("\n", " ") for text in texts]

    colour, group = words("colour"), words("group")
    assert "L2 λ = 0.1 (*)" in colour
    assert "static FD λ = 1" in colour
    assert table.NOTES["(*)"] in colour
    assert colour.count("paper") == 2
    assert "paper" not in group


def results_of(rows: list[Row], task: Task = "colour") -> Results:
    return Results(task, "embedded digits", Scale(), rows)


def test_table_shows_means_stars_and_the_paper(rows):
    lines = table.text(results_of(rows)).splitlines()
    static = next(line for line in lines if line.startswith("static FD") and " * 1 " in line)
    assert "89.0 ± 1.4" in static
    assert len([line for line in lines if " * " in line]) == 2  # one λ of static and WMA each
    assert next(line.split()[1:3] for line in lines if " (*) " in line) == ["(*)", "0.1"]
    assert lines[-2:] == [table.NOTES["*"], table.NOTES["(*)"]]
    ends = [re.search(r"^(\w.*?)  .*± \d+\.\d +(\d+\.\d)$", line) for line in lines]
    paper = [end.groups() for end in ends if end]
    assert paper == [("direct", "37.9"), ("static FD", "1.8"), ("WMA FD", "0.1")]  # L2 has not learned
    assert static.endswith("1.8")


def test_a_table_without_a_fallback_says_nothing_of_it_and_the_paper_has_no_groups(rows):
    able = [row for row in rows if row.strategy != "l2"]
    assert "(*)" not in table.text(results_of(able))
    assert not any(number in table.text(results_of(able, "group")) for number in ("37.9", "13.6"))
    pretrained = table.markdown(results_of(able)).splitlines()[2]
    assert (
        pretrained
        == "| pretrained |  | 50.0 ± 0.0 | 94.0 ± 1.4 |  | 30.0 ± 0.0 | 20.0 ± 0.0 | 10.0 ± 0.0 | 5.0 ± 0.0 |  |"
    )


def test_markdown_marks_the_best(rows):
    lines = table.markdown(results_of(rows)).splitlines()
    assert [line.split(" | ")[1] for line in lines[4:]] == ["(\\*) 0.1", "10", "**1**", "10", "**10**"]


def test_a_study_is_shown_from_its_json(rows, tmp_path, capsys):
    write_comparison(results_of(rows), tmp_path, "tracer toy")
    assert command(["--show", str(tmp_path / "toy-colour.json"), "--out", str(tmp_path / "new")]) == 0
    assert capsys.readouterr().out.strip() == table.markdown(results_of(rows)).strip()
    for name in ("toy-colour.svg", "toy-colour-frontier.svg"):
        assert (tmp_path / "new" / name).read_bytes() == (tmp_path / name).read_bytes()
    assert not (tmp_path / "new" / "toy-colour.json").exists()
    (tmp_path / "other.json").write_text("[]")
    for other in ("other.json", "missing.json"):
        with pytest.raises(UserError, match=rf"--show .*{other}: not a result file of the toy study"):
            show(tmp_path / other)


def test_teachers_are_written_and_read(tmp_path):
    runs = {title: curves_of([0.1, 0.3, 0.2, *([0.1] * 47)]) for title, *_ in teachers(500)}
    text = write_teachers(runs, "colour", tmp_path, "tracer toy --teachers")
    says_where_it_is_from(tmp_path / "toy-teachers.json", "tracer toy --teachers")
    assert read_teachers(tmp_path / "toy-teachers.json") == runs
    assert text.count("\n") == 1 + len(runs)
    assert {file.stem for file in tmp_path.glob("*.svg")} == {
        f"toy-{name}" for name in figures.teachers(runs)
    }
    assert json.loads((tmp_path / "toy-teachers.json").read_text())["teachers"].keys() == runs.keys()


def test_the_task_of_the_early_script_has_its_teacher_as_a_row():
    names = [variant.strategy for variant in variants(frontier=False, task="digit")]
    assert names.count("slow") == 2
    assert "slow" not in {variant.strategy for variant in variants(frontier=True)}
    (slow, _) = (variant for variant in variants(frontier=False, task="digit") if variant.strategy == "slow")
    policy = method(slow.method, **slow.options).stages[0].policy(60)
    assert policy is not None
    assert policy.move(policy.start(60), 1, 60)[0] == pytest.approx(1e-5)
    assert Setting(Path("x"), "digit").painted == "coloured"
    assert Setting(Path("x"), "group").painted == "group"
    assert reported("digit", "slow") == PUBLISHED["dynamic"]
    assert reported("group", "direct") is None
