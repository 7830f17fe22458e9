"""Numbers that are kept, and the commands that read or replace them: one input changes, the command is given again."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kept import estimates
from PIL import Image

from tracer.cli.app import main
from tracer.measure.answers import Store
from tracer.models.export import export
from tracer.models.student import load
from tracer.report.comparison import compare
from tracer.report.paired import paired_sets
from tracer.report.run_data import read_run, read_runs

CPU = ["--device", "cpu"]
COLOURS = ("red", "green", "blue")
Say = pytest.CaptureFixture[str]


def pictures(folder: Path, table: str, each: int, seed: int) -> None:
    """Plain pictures, of which the table says the number of the colour."""
    rng = np.random.default_rng(seed)
    lines = ["filepath,label"]
    for channel in range(3):
        for number in range(each):
            pixels = rng.integers(0, 60, (8, 8, 3), dtype=np.uint8)
            pixels[..., channel] += 150
            name = f"{table}-{channel}-{number}.png"
            Image.fromarray(pixels).save(folder / name)
            lines.append(f"{name},{channel}")
    (folder / f"{table}.csv").write_text("\n".join(lines))


def train(model: Path, *words: str) -> None:
    """A probe that tells the colours apart; as a user gives files, by relative paths."""
    asked = ["train", "lp", "--solver", "lbfgs", "--unit", "--model", str(model), "--batch", "8"]
    asked += ["--data", "train.csv", "--classes", "names.txt", "--templates", "prompts.txt"]
    assert main([*asked, "--workers", "0", *CPU, *words]) == 0


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, minute_model: Path) -> Path:
    """Pictures of three colours, and a probe that tells them apart, trained once with files of names and of prompts."""
    home = tmp_path_factory.mktemp("made")
    for table, each, seed in (("train", 12, 0), ("test", 10, 1), ("retained", 10, 2)):
        pictures(home, table, each, seed)
    (home / "names.txt").write_text("\n".join(COLOURS))
    (home / "prompts.txt").write_text("a {} picture\n")
    export(load(str(minute_model), seed=0), home / "model")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        train(home / "model", "--out", "run")
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same in a folder of a test's own, in which the commands are given."""
    place = tmp_path / "home"
    shutil.copytree(made, place)
    monkeypatch.chdir(place)
    return place


def evaluated(capsys: Say, *words: str, run: str = "run") -> str:
    capsys.readouterr()
    assert main(["eval", run, *words, *CPU]) == 0
    return " ".join(capsys.readouterr().err.split())


def accuracy(folder: str = "run/predictions/result", name: str = "test.csv") -> float:
    return estimates(Path(folder))[name, "accuracy"].value


def rotate(table: str = "test.csv") -> None:
    """Every label another one."""
    file = Path(table)
    file.write_text(re.sub(r",(\d)", lambda label: f",{(int(label[1]) + 1) % 3}", file.read_text()))


def fewer() -> None:
    """The reds only."""
    lines = Path("test.csv").read_text().splitlines()
    Path("test.csv").write_text("\n".join(lines[:11]))


def repaint() -> None:
    """Blue pictures under the names of red ones."""
    for number in range(10):
        shutil.copy(f"test-2-{number}.png", f"test-0-{number}.png")


def other_prompts() -> None:
    Path("given.txt").write_text("no {} at all\n")


def other_names() -> None:
    Path("names.txt").write_text("blue\nred\ngreen")


def own_prompts() -> None:
    Path("prompts.txt").write_text("a drawing of {}\n")


def nothing() -> None:
    return


CHANGES: list[tuple[Callable[[], None], str, float]] = [
    (nothing, "", 1.0),
    (rotate, "labels", 0.0),
    (fewer, "images and labels", 1.0),
    (repaint, "images", 2 / 3),
    (other_prompts, "templates", 1.0),  # the head answers, whatever the prompts are
    (other_names, "", 1.0),  # the names of the run are those that it began with
    (own_prompts, "", 1.0),
]


@pytest.mark.parametrize(("change", "differs", "now"), CHANGES, ids=[each.__name__ for each, *_ in CHANGES])
def test_eval_measures_what_is_there_and_says_what_differs(
    home: Path, capsys: Say, change: Callable[[], None], differs: str, now: float
) -> None:
    other = change is other_prompts
    Path("given.txt").write_text("a {} picture\n")
    words = ["--data", "test.csv", *(["--templates", "given.txt"] if other else [])]
    evaluated(capsys, *words)
    assert accuracy() == 1.0
    (before,) = (each.key for each in Store(home / "run/predictions/result").all() if each.role == "id")
    change()
    said = evaluated(capsys, *words)
    assert accuracy() == pytest.approx(now)
    (after,) = (each.key for each in Store(home / "run/predictions/result").all() if each.role == "id")
    assert before.differs(after) == differs
    told = f"run/predictions/result holds of test.csv is replaced: it is of other {differs}"
    assert (told in said) == bool(differs), said
    if change in (other_names, nothing):
        assert "with the class names of the run" in said


def test_a_file_of_the_same_name_in_another_folder_is_not_read_for_a_run(
    home: Path, capsys: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Class names and prompts of the run were given by relative paths, which mean other files here."""
    (home / "elsewhere").mkdir()
    (home / "elsewhere" / "names.txt").write_text("green\nblue\nred\nyellow")
    (home / "elsewhere" / "prompts.txt").write_text("not {}")
    evaluated(capsys, "--data", "test.csv")
    (here,) = (each for each in Store(home / "run/predictions/result").all() if each.role == "id")
    monkeypatch.chdir(home / "elsewhere")
    evaluated(capsys, "--data", "../test.csv", run="../run")
    (there,) = (each for each in Store(home / "run/predictions/result").all() if each.role == "id")
    assert (here.key, here.estimates) == (there.key, there.estimates)
    (shown,) = (each for each in paired_sets(read_run(Path("../run"))) if each.role == "id")
    assert shown.change.after.value == 1.0
    assert Path(shown.source["data"]).resolve() == home / "test.csv", (
        "the report finds pictures from any folder"
    )


def test_only_after_is_measured_anew_and_the_report_pairs_it_with_no_other_before(
    home: Path, capsys: Say
) -> None:
    evaluated(capsys, "--data", "test.csv")
    rotate()
    evaluated(capsys, "--data", "test.csv", "--weights", "result", "--format", "json")
    data = read_run(home / "run")
    assert [each.role for each in paired_sets(data)] == ["task"]
    assert {each.data for each in data.scored["after"]} == {"test.csv"}
    assert {each.data for each in data.scored["before"]} == {"test.csv (other labels)"}


def test_runs_that_were_asked_other_questions_of_one_name_share_no_column(
    home: Path, made: Path, capsys: Say
) -> None:
    train(made / "model", "--seed", "1", "--out", "second")
    evaluated(capsys, "--data", "test.csv")
    rotate()
    evaluated(capsys, "--data", "test.csv", run="second")
    runs, _ = read_runs([home / "run", home / "second"])
    (group,) = compare(runs)
    columns = {
        key.data: len(values) for key, values in group.settings[0].measures["after"].items() if key.role
    }
    assert columns == {"test.csv": 1, "test.csv (other labels)": 1}
    evaluated(capsys, "--data", "test.csv")
    (group,) = compare(read_runs([home / "run", home / "second"])[0])
    columns = {
        key.data: len(values) for key, values in group.settings[0].measures["after"].items() if key.role
    }
    assert columns == {"test.csv": 2}


@pytest.mark.parametrize("order", [(2, 0, 1), (1, 2, 0), (0, 1, 2)])
def test_the_runs_own_classes_in_another_order_are_scored_by_its_head(
    home: Path, capsys: Say, order: tuple[int, ...]
) -> None:
    shown = home / "shown"
    for channel, name in enumerate(COLOURS):
        (shown / name).mkdir(parents=True)
        for number in range(10):
            shutil.copy(f"test-{channel}-{number}.png", shown / name / f"{number}.png")
    Path("order.txt").write_text("\n".join(COLOURS[i] for i in order))
    for model in ("run", "exported"):
        if model == "exported":
            assert main(["export", "run", "--out", model]) == 0
        said = evaluated(
            capsys, "--data", "shown", "--classes", "order.txt", "--out", f"out/{model}", run=model
        )
        assert accuracy(f"out/{model}", "shown") == 1.0
        assert "not by the trained head" not in said
    keys = {each.key for model in ("run", "exported") for each in Store(Path(f"out/{model}")).all()}
    evaluated(capsys, "--data", "shown", "--out", "plain")
    (plain,) = Store(Path("plain")).all()
    assert {plain.key} == {key._replace(templates=plain.key.templates) for key in keys}, "the same question"


def test_other_classes_than_the_heads_are_a_warning_that_names_one(home: Path, capsys: Say) -> None:
    Path("more.txt").write_text("red\ngreen\nblue\nyellow")
    said = evaluated(capsys, "--data", "test.csv", "--classes", "more.txt")
    assert "test.csv is scored by class names, not by the trained head of run" in said
    assert "'yellow' is in one list only" in said


@pytest.mark.parametrize("lost", ["head.safetensors", "task.json"])
def test_an_export_that_has_lost_a_part_of_its_head_is_refused(home: Path, capsys: Say, lost: str) -> None:
    assert main(["export", "run", "--out", "exported"]) == 0
    Path("exported", lost).unlink()
    assert main(["eval", "exported", "--data", "test.csv", *CPU]) == 2
    assert lost in " ".join(capsys.readouterr().err.split())


def test_sets_whose_names_differ_by_a_slash_are_two(home: Path, capsys: Say) -> None:
    Path("y").mkdir()
    for channel in range(3):
        for place in ("y/test", "y_test"):
            colour = COLOURS[(channel + 1) % 3 if place == "y/test" else channel]
            Path(place, colour).mkdir(parents=True)
            for number in range(10):
                shutil.copy(f"test-{channel}-{number}.png", f"{place}/{colour}/{number}.png")
    evaluated(capsys, "--data", "id=y/test", "ood=y_test")
    assert (accuracy(name="y/test"), accuracy(name="y_test")) == (0.0, 1.0)
    changes = {each.name: each.change.after.value for each in paired_sets(read_run(home / "run"))}
    assert (changes["y/test"], changes["y_test"]) == (0.0, 1.0)


def merged(capsys: Say, *words: str) -> str:
    capsys.readouterr()
    assert main(["merge", "run", *words, *CPU]) == 0
    said = capsys.readouterr()
    return " ".join((said.err + said.out).split())


def test_a_merge_of_a_name_again_says_so_and_takes_what_was_measured_with_it(home: Path, capsys: Say) -> None:
    assert "replaced" not in merged(capsys, "--wise", "0.05", "--name", "m")
    evaluated(capsys, "--data", "test.csv", "--weights", "m")
    place = home / "run" / "predictions" / "m"
    assert Store(place).all()
    assert "replaced" not in merged(capsys, "--wise", "0.05", "--name", "m"), "the same weights"
    assert Store(place).all()
    said = merged(capsys, "--wise", "0.9", "--name", "m")
    assert "warning: other weights were called m: they are replaced" in said
    assert not place.exists()
    assert json.loads((home / "run" / "merges" / "m.json").read_text())["alpha"] == 0.9


def test_the_card_tells_what_was_measured_of_these_very_weights(home: Path, capsys: Say) -> None:
    merged(capsys, "--wise", "0.5")

    def card(name: str) -> str:
        assert main(["export", "run", "--weights", "wise-0.5", "--out", name]) == 0
        return Path(name, "README.md").read_text(encoding="utf-8")

    assert "task, held out" in card("first")
    shutil.copy("run/weights/result.safetensors", "run/weights/wise-0.5.safetensors")
    assert "task, held out" not in card("second")


def test_merges_of_other_weights_have_other_names(home: Path, capsys: Say) -> None:
    assert "Kept as wise-0.5." in merged(capsys, "--wise", "0.5")
    assert "Kept as wise-0.5-student." in merged(capsys, "--wise", "0.5", "--weights", "student")


@pytest.mark.parametrize("change", [lambda: rotate("train.csv"), lambda: rotate("test.csv")])
def test_a_merge_chooses_by_the_images_that_are_there_or_refuses(
    home: Path, capsys: Say, change: Callable[[], None]
) -> None:
    chosen = ["--wise", "0:1:0.5", "--retain", "test.csv"]

    def measured() -> dict[str, float] | None:
        if main(["merge", "run", *chosen, *CPU]) != 0:
            assert "holds another experiment" in " ".join(capsys.readouterr().err.split())
            return None
        (file,) = Path("run/merges").glob("*.json")
        after = json.loads(file.read_text())["after"]
        shutil.rmtree("run/merges")
        return after["retained"]

    before = measured()
    assert before is not None
    change()
    assert measured() != before


RECIPE = """
from tracer.evaluation.test_sets import TestSets
from tracer.runs.experiment import Experiment
from tracer.sweep import Sweep, product

def study(*, seeds: int = 1, more: int = 0) -> Sweep:
    base = Experiment(method="lp", data="train.csv", model="model", classes="names.txt", templates="a {} picture",
                      batch=8, options={"solver": "lbfgs"})
    data = ("id=test.csv", "ood=retained.csv")[: 1 + more]
    reading = TestSets().reading.__class__(classes="names.txt")
    return Sweep(product(base, seed=range(seeds)), tests=TestSets(data=data, reading=reading))
"""


def test_a_sweep_scores_all_runs_on_the_test_sets_that_it_has_now(home: Path, capsys: Say) -> None:
    Path("rec.py").write_text(RECIPE)

    def swept(*words: str) -> list[dict[str, float]]:
        assert main(["sweep", "rec.py:study", "--out", "out", *words, "--worker", *CPU]) == 0
        place = [file.parent for file in Path("out").glob("*/result.json")]
        found = [estimates(run / "predictions" / "result") for run in place]
        return [
            {name: each.value for (name, metric), each in own.items() if metric == "accuracy"}
            for own in found
        ]

    assert swept() == [{"test.csv": 1.0}]
    rotate()
    assert swept("--seeds", "2") == [{"test.csv": 0.0}] * 2, "the first was scored on other labels"
    both = [{"test.csv": 0.0, "retained.csv": 1.0}] * 2
    assert swept("--seeds", "2", "--more", "1") == both, "a test set that was added"
    for run in Path("out").glob("*/result.json"):
        evaluated(capsys, "--data", "test.csv", "--weights", "result", run=str(run.parent))
    shutil.rmtree(next(Path("out").glob("*/predictions")))
    assert swept("--seeds", "2", "--more", "1") == both


def test_fit_tests_its_choice_on_the_images_that_are_there(home: Path, capsys: Say) -> None:
    for split, table in (("train", "train"), ("val", "retained"), ("test", "test")):
        for channel, name in enumerate(COLOURS):
            (home / "d" / split / name).mkdir(parents=True)
            for file in home.glob(f"{table}-{channel}-*.png"):
                shutil.copy(file, home / "d" / split / name)
    asked = ["fit", "--data", "d", "--model", "model", "--budget", "2-runs", "--steps", "4", "--batch", "8"]
    asked += ["--retain", "d/val", "--out", "fit", *CPU]

    def fitted() -> tuple[str, dict]:
        capsys.readouterr()
        assert main(asked) == 0
        return " ".join(capsys.readouterr().out.split()), json.loads(Path("fit/fit.json").read_text())

    _, first = fitted()
    assert (first["looks"], first["task"]["n"], first["task"]["after"][1]) == (1, 30, 1.0)
    said, again = fitted()
    assert again == first
    assert "Testing the choice" not in said
    red, green = home / "d" / "test" / "red", home / "d" / "test" / "green"
    red.rename(home / "red")
    green.rename(red)
    (home / "red").rename(green)
    said, changed = fitted()
    assert "The test has other images than when this choice was tested before: look 2." in said
    assert (changed["looks"], changed["task"]["n"]) == (2, 30)
    assert changed["task"]["after"][1] == pytest.approx(1 / 3)
    shutil.copy(home / "test-2-0.png", red / "more.png")
    said, more = fitted()
    assert (more["looks"], more["task"]["n"]) == (3, 31)
    Path("fit/fit.json").unlink()
    _, without = fitted()
    assert without["task"] == more["task"], "from the answers"
    shutil.move(home / "d/val/red/retained-0-0.png", home / "d/val/blue")
    assert main(asked) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert re.search("holds another experiment .*, with other .*(held-out|retained)", said), said
