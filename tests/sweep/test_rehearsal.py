"""A recipe of the paper from data to table, shrunken, on replicas of ImageNet's layouts with all five shifts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import replicas
from kept import estimates

from tracer.api.terminal import console
from tracer.cli import app as cli
from tracer.evaluation.suites.synsets import synsets
from tracer.measure.answers import Answers, Estimate, Key
from tracer.recipes import ablation, paper
from tracer.recipes.published import Published
from tracer.runs.experiment import Experiment
from tracer.runs.run import Run
from tracer.sweep.product import Sweep
from tracer.sweep.shrink import shrunk
from tracer.sweep.supervisor import sweep_progress
from tracer.sweep.worker import work

SHORT = ("IN", "IN-V2", "IN-R", "IN-A", "IN-S", "ObjNet")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train, val and the five shifts, a few images each."""
    folder = replicas.build(tmp_path_factory.mktemp("imagenet"))
    for index in replicas.VAL:
        for i in range(8):
            replicas.save(folder / f"train/{synsets()[index]}/{i}.JPEG", replicas.colour("train", index, i))
    return folder


def test_a_shrunken_row_is_trained_scored_and_printed_beside_the_paper(root: Path, tmp_path: Path) -> None:
    sweep = shrunk(paper.table1_vitb16(data=str(root), methods=("tracer",), seeds=1), 5000)
    work(sweep, tmp_path, "cpu")
    (run,) = sweep.by_folder(tmp_path)
    assert sweep_progress(sweep, tmp_path).done == 1
    scores = estimates(run / "predictions" / "result")
    assert [each.n for (_, metric), each in scores.items() if metric == "accuracy"] == list(
        replicas.SIZES.values()
    )
    assert sweep.published is not None
    accuracy, ece = sweep.published(sweep.by_folder(tmp_path)).split("**Table 1. ECE")
    assert re.search(" | ".join(["seeds", *map(re.escape, SHORT), "Avg. of 5 shifts"]), accuracy)
    (line,) = [line for line in accuracy.splitlines() if line.startswith("| TRACER")]
    for value in (82.76, 74.14, 79.33, 54.92, 53.69, 58.26, 64.07):
        assert re.search(rf"\| \d+\.\d\d† \({value}\)", line)
    assert "(0.0450)" in ece
    assert "incomplete copy" in ece
    next((run / "predictions/result").glob("ImageNet-V2-*")).unlink()  # not scored on all: not done
    assert sweep_progress(sweep, tmp_path).done == 0


def test_shrinking_keeps_methods_and_shares_of_training() -> None:
    sweep = paper.table3_rn50(data="x", root="y", seeds=1)
    small = {run.method: run for run in shrunk(sweep, 1000).experiments}
    for run in sweep.experiments:
        kept = {key: value for key, value in run.options.items() if key != "every"}
        assert {key: value for key, value in small[run.method].options.items() if key != "every"} == kept
    assert (small["tracer"].steps, small["lpft"].steps, small["carot"].options["every"]) == (25, 38, 1.0)
    assert {run.model for run in small.values()} == {"tiny-rn-32"}
    assert shrunk(paper.table3_vitl14(data="x", seeds=1), 1000).experiments[0].model == "tiny-32"
    tests = shrunk(sweep, 1000).tests
    assert tests is not None
    assert tests.allow_partial
    digits = shrunk(ablation.beta(seeds=1), 10)
    assert digits.start is not None
    assert (digits.start.model, digits.start.steps, digits.experiments[0].steps) == ("tiny-28", 20, 6)
    assert digits.experiments[0].warmup is None


def test_the_dry_run_shows_steps_memory_and_what_is_missing(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "_width", 300)  # COLUMNS is read only once, when the console is made
    recipe = [
        "sweep",
        "tracer.recipes.paper:table1_vitb16",
        "--data",
        str(root),
        "--out",
        str(tmp_path / "out"),
    ]
    rows = ["--methods", "tracer", "--seeds", "1"]
    assert cli.main([*recipe, *rows, "--shrink", "1000", "--dry-run"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert re.search(r"25 │ 1 │ \d+\.\d GiB", shown)
    assert "method tracer, targets pair" in shown
    assert "24 images to train on, 6 held out" in shown
    assert "ImageNet has 1,281,167 training images" in shown
    for missing in ("6 of 50000", "8 of 10000", "6 of 30000", "4 of 7500", "4 of 50889", "6 of 18574"):
        assert f"{missing} images" in shown
    assert cli.main([*recipe, *rows, "--dry-run"]) == 1  # what the settings say is shown of a refused run too
    shown = " ".join(capsys.readouterr().out.split())
    assert re.search(r"25,030 │ 500 │ +│ refused", shown)
    assert "batch 512 is larger than the data" in shown
    assert cli.main([*recipe, *rows]) == 2  # the real thing is refused before anything is trained
    assert "test sets of this recipe are not complete" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_run_that_would_be_refused_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = [
        "sweep",
        "tracer.recipes.paper:table1_vitb16",
        "--data",
        str(tmp_path / "nowhere"),
        "--seeds",
        "1",
    ]
    assert cli.main([*missing, "--methods", "flyp", "--dry-run"]) == 1
    shown = capsys.readouterr().out
    assert "nowhere" in shown
    assert "refused" in shown
    assert "weights openai of ViT-B-16" in shown


def test_seeds_are_averaged_and_empty_rows_still_show_the_paper(tmp_path: Path) -> None:
    """Two seeds with accuracies 0.5 and 0.7: 60.00 ± 14.14; the average needs every shift that the table has."""
    runs = {tmp_path / str(seed): Experiment(data="x", method="flyp", seed=seed) for seed in range(2)}
    for folder, value in zip(runs, (0.5, 0.7), strict=True):
        for name in ("ImageNet", "ImageNet-V2"):
            scores = (Estimate(name, "ood", "accuracy", value, value, value, 50),)
            Run(folder).answers("result").write(Answers(name, "ood", Key(*"abcdef"), "x", scores))
    runs[tmp_path / "none"] = Experiment(data="x", method="tracer")
    values = {("flyp", "accuracy"): {"val": 82.72, "v2": 72.76, "average": 59.45}}
    text = Published("Table", lambda run: run.method, values)(runs)
    assert "| FLYP | 2 | 60.00 ± 14.14 (82.72) | 60.00 ± 14.14 (72.76) | 60.00 ± 14.14 (59.45) |" in text
    assert "| TRACER | 0 | – | – | – |" in text


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["table1_vitb16", "table2_vitb16", "table3_rn50", "table3_vitl14"])
def test_every_row_of_every_table(root: Path, tmp_path: Path, recipe: str) -> None:
    """All rows of the paper's tables from data to table: minutes."""
    made = getattr(paper, recipe)(data=str(root), seeds=1, anchors=str(root / "train"))
    _all_rows(made, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["terms", "strength", "interval", "beta"])
def test_every_row_of_every_ablation(root: Path, tmp_path: Path, recipe: str) -> None:
    _all_rows(getattr(ablation, recipe)(data=str(root), seeds=1), tmp_path)


def _all_rows(sweep: Sweep, folder: Path) -> None:
    small = shrunk(sweep, 5000)
    work(small, folder, "cpu")
    runs = small.by_folder(folder)
    assert not [(run / "failed.txt").read_text() for run in runs if (run / "failed.txt").exists()]
    assert small.published is not None
    scored = [line for line in small.published(runs).splitlines() if "†" in line and line[0] == "|"]
    assert len(scored) == 2 * len({small.published.row(run) for run in small.experiments})
