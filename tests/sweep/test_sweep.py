"""Sweeps: the right product, one run each, and the same tables after a SIGKILL."""

from __future__ import annotations

import csv
import json
import shlex
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from starting import environment

from studies.faults.process import CommandProcess
from tracer.cli import app as cli
from tracer.cli.commands.sweep import _state as progress
from tracer.cli.flags import flags_of
from tracer.core.errors import UserError
from tracer.recipes import ablation, paper
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.storage.lock import lock
from tracer.sweep import START, Sweep, product, recipe
from tracer.sweep.recipe import recipes as recipes_of
from tracer.sweep.supervisor import SweepProgress, sweep_progress
from tracer.sweep.tables import write_tables
from tracer.sweep.worker import work

RECIPE = '''
from tracer.evaluation import measured
from tracer.runs.experiment import Experiment
from tracer.sweep import START, Sweep, product

NAMES = measured.known_names()[:24]
measured.known_names = lambda: NAMES  # in worker processes as in the tests' own

DATA, MODEL = {data!r}, {model!r}
SIZE = dict(data=DATA, held_out=DATA, templates="name", batch=8, augment="none", lr=1e-3)


def tiny(*, steps: int = 2, rates: tuple[float, ...] = (1e-3,), seeds: int = 2) -> Sweep:
    """Four runs that start from a fifth."""
    start = Experiment(method="flyp", model=MODEL, pretrained="none", steps=2, **SIZE)
    base = Experiment(model=START, retain=(DATA,), steps=steps, **SIZE)
    return Sweep(product(base, beta=(0.5, 1.0), lr=rates, seed=range(seeds)), start)
'''


NANO = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 28, "layers": 1, "width": 32, "head_width": 16, "patch_size": 14},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
}


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A recipe in a file of one's own, on two classes of noise."""
    folder = tmp_path_factory.mktemp("sweep")
    random = np.random.default_rng(0)
    for label, base in (("dark", 0), ("bright", 128)):
        (folder / "photos" / label).mkdir(parents=True)
        for i in range(12):
            pixels = random.integers(base, base + 128, (28, 28, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / "photos" / label / f"{i}.png")
    model = folder / "nano.json"
    model.write_text(json.dumps(NANO))
    (folder / "mine.py").write_text(RECIPE.format(data=str(folder / "photos"), model=str(model)))
    return f"{folder / 'mine.py'}:tiny"


BASE = Experiment(data="digits", model="tiny-28")


def test_a_product_has_every_combination_once_the_last_name_fastest() -> None:
    made = product(BASE, beta=[0.2, 0.7], lr=[1e-3, 1e-4], seed=range(2))
    assert [(e.options["beta"], e.lr, e.seed) for e in made] == [
        (b, lr, seed) for b in (0.2, 0.7) for lr in (1e-3, 1e-4) for seed in (0, 1)
    ]
    assert len({e.id for e in made}) == 8


def test_another_method_keeps_only_the_options_it_has() -> None:
    base = product(BASE, beta=[0.2], strength=[2.0])[0]
    (other,) = product(base, method=["static_sd"])
    assert (other.method, other.options) == ("static_sd", {"strength": 2.0})


def test_unknown_names_and_bad_values_are_refused_before_anything_runs() -> None:
    with pytest.raises(UserError, match="did you mean beta"):
        product(BASE, betta=[0.5])
    with pytest.raises(UserError, match="positive shapes"):
        product(BASE, beta=[-1.0])
    with pytest.raises(UserError, match="at least one value"):
        Sweep(product(BASE, seed=[]))
    with pytest.raises(ValueError, match="start from"):
        Sweep((Experiment(data="digits", model=START),))


def test_recipes_are_found_by_module_and_file(mine: str) -> None:
    assert recipe("tracer.recipes.ablation:beta")().experiments
    assert len(recipe(mine)().experiments) == 4
    for name, why in (
        ("beta", "no function"),
        ("nowhere:x", "cannot import"),
        (":x", "cannot import"),
        ("..up:x", "cannot import"),
        ("no.py:x", "no file"),
    ):
        with pytest.raises(UserError, match=why):
            recipe(name)
    with pytest.raises(UserError, match="did you mean strength"):
        recipe("tracer.recipes.ablation:strenght")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("terms", 16),
        ("strength", 14),
        ("interval", 10),
        ("beta", 6),
        ("kernels", 6),
        ("teachers", 6),
        ("targets", 2),
    ],
)
def test_every_ablation_is_distinct_and_can_be_planned(name: str, settings: int, tmp_path: Path) -> None:
    sweep = recipe(f"tracer.recipes.ablation:{name}")(seeds=2)
    assert len(sweep.by_folder(tmp_path)) == 2 * settings
    assert sweep.start is not None
    planned = plan(Experiment(**{**vars(sweep.experiments[-1]), "model": "tiny-28", "pretrained": "none"}))
    assert planned.steps == 60
    full = recipe(f"tracer.recipes.ablation:{name}")(data="photos", seeds=1)
    assert full.start is None
    assert {e.batch for e in full.experiments} == {512}


def test_the_papers_intervals_are_kept_as_shares_of_training() -> None:
    full = recipe("tracer.recipes.ablation:interval")(data="photos", seeds=1)
    assert sorted({e.options["every"] for e in full.experiments}) == [1, 2, 5, 10, 50, 100, 500, 1000, 2500]
    half = recipe("tracer.recipes.ablation:interval")(data="photos", seeds=1, steps=12_515)
    assert max(e.options["every"] for e in half.experiments) == 1250


def test_a_lock_is_for_one_and_ends_with_its_block(tmp_path: Path) -> None:
    with lock(tmp_path / "lock") as mine, lock(tmp_path / "lock") as yours:
        assert (mine, yours) == (True, False)
    with lock(tmp_path / "lock") as free:
        assert free


def killed_midway(mine: str, folder: Path) -> None:
    """Work on the sweep in a process that is killed for good in the middle of its second run."""
    process = CommandProcess(["sweep", mine, "--steps", "12", "--out", str(folder), "--worker"])
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        begun = {log.parent for log in folder.glob("*/log.jsonl")}
        done = list(folder.glob("*/result.json"))
        if len(done) >= 2 and len(begun - {file.parent for file in done}) == 1:
            break
        time.sleep(0.01)
    process.kill()
    assert process.wait().killed


def test_a_killed_sweep_goes_on_to_the_same_tables(mine: str, tmp_path: Path) -> None:
    sweep = recipe(mine)(steps=12)
    folder = tmp_path / "sweep"
    killed_midway(mine, folder)
    before = sweep_progress(sweep, folder)
    assert 1 <= before.done < 4, "killed too early or too late to show anything"
    assert 0 < before.share < 1
    assert not before.starting
    kept = {place: (place / "result.json").stat().st_mtime_ns for place in folder.glob("*") if place.name != "start"
            and (place / "result.json").exists()}  # fmt: skip
    work(sweep, folder, "cpu")
    assert sweep_progress(sweep, folder).done == 4
    assert all((place / "result.json").stat().st_mtime_ns == time_ for place, time_ in kept.items())
    tables = [file.read_bytes() for file in write_tables(sweep, folder)]
    undisturbed = tmp_path / "elsewhere" / "sweep"
    undisturbed.parent.mkdir()
    # The same place, so that names are the same: the first sweep steps aside.
    folder.rename(undisturbed)
    work(sweep, folder, "cpu")
    assert [file.read_bytes() for file in write_tables(sweep, folder)] == tables
    rows = list(csv.DictReader((folder / "table.csv").read_text().splitlines()))
    assert [(row["beta"], row["seed"]) for row in rows] == [
        ("0.5", "0"),
        ("0.5", "1"),
        ("1", "0"),
        ("1", "1"),
    ]
    assert all(0 <= float(row["accuracy"]) <= 1 for row in rows)


def test_the_command_runs_all_skips_what_is_done_and_names_what_failed(
    mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In worker processes that are started as a user's are."""
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "sweep"
    plain = ["sweep", mine, "--out", str(folder), "--device", "cpu", "--seeds", "1"]
    assert cli.main([*plain, "--rates", "1e-3", "1e30"]) == 1
    told = capsys.readouterr()
    assert "2 failed, 0 not finished" in told.err
    assert "NaN" in told.err or "not finite" in told.err
    assert len(list(folder.glob("*/failed.txt"))) == 2
    assert "TRACER" in (folder / "report.html").read_text()
    results = {file: file.stat().st_mtime_ns for file in folder.glob("*/result.json")}
    capsys.readouterr()
    assert cli.main(plain) == 0
    assert "Best of 2 settings on the task: " in capsys.readouterr().out
    assert "±" in (folder / "table.md").read_text()  # one seed: over its images
    assert {file: file.stat().st_mtime_ns for file in folder.glob("*/result.json")} == results


def test_help_names_the_recipes_and_a_recipe_its_flags(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["sweep", "--help"])
    told = capsys.readouterr().out
    assert all(
        name in told for name in ("terms", "strength", "interval", "beta", "kernels", "teachers", "targets")
    )
    with pytest.raises(SystemExit, match="0"):
        cli.main(["sweep", "tracer.recipes.ablation:beta", "--help"])
    told = capsys.readouterr().out
    told = " ".join(told.split())
    assert (
        "--values [FLOAT ...] values of both parameters of the kernel. (default: 0.2 0.5 0.7 0.9 1.0 1.5)"
        in told
    )
    assert "--seeds INT runs per setting. (default: 3)" in told
    assert "--jobs INT" in told
    assert "Args:" not in told


def test_every_flag_of_every_recipe_is_described() -> None:
    for module in (ablation, paper):
        for name, found in recipes_of(module).items():
            assert all(flag.text for flag in flags_of(found)), name


def test_what_a_recipe_says_of_a_flag_goes_before_what_its_module_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        '''"""Args:\n    a: of the module.\n    b: of the module.\n"""\n\n'''
        '''def study(a: int, b: int = 0):\n    """Two flags.\n\n    Args:\n        a: of its own.\n    """\n'''
    )
    with pytest.raises(SystemExit, match="0"):
        cli.main(["sweep", f"{file}:study", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "--a INT of its own. (required)" in told
    assert "--b INT of the module. (default: 0)" in told


def test_progress_counts_the_start_and_tells_the_time_left(mine: str, tmp_path: Path) -> None:
    """A start that is half done is a tenth of five runs of equal weight."""
    sweep, start = recipe(mine)(), tmp_path / "start"
    assert sweep_progress(sweep, tmp_path) == SweepProgress(4, 0, (), 0.0, starting=True)
    start.mkdir()
    (start / "experiment.json").write_text(json.dumps({"steps": 2}))
    (start / "log.jsonl").write_text(json.dumps({"step": 1, "kind": "train"}) + "\n")
    now = sweep_progress(sweep, tmp_path)
    assert now.share == pytest.approx(0.1)
    assert progress(replace(now, seconds_left=90.0)) == (
        "0 of 4 runs, making the model that they start from, 90 s left"
    )
    assert (
        progress(SweepProgress(4, 3, (tmp_path,), 0.9, seconds_left=7200.0))
        == "3 of 4 runs, 1 failed, 2.0 h left"
    )
    assert progress(SweepProgress(4, 4, (), 1.0, seconds_left=0.0)) == "4 of 4 runs"


def test_one_experiment_that_fails_says_so_and_is_tried_again(
    mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the task of an array: SLURM sees the failure, and submitting again mends it."""
    folder = tmp_path / "sweep"
    asked = ["sweep", mine, "--out", str(folder), "--device", "cpu", "--seeds", "1", "--only", "0"]
    assert cli.main([*asked, "--rates", "1e30"]) == 1
    (failed,) = folder.glob("*/failed.txt")
    assert str(failed.parent) in capsys.readouterr().err.replace("\n", "")
    assert cli.main(asked) == 0
    (place,) = (
        place for place in recipe(mine)(seeds=1).by_folder(folder) if (place / "result.json").exists()
    )
    (place / "result.json").rename(tmp_path / "kept.json")
    (place / "failed.txt").write_text("OSError: the disk was full\n")
    assert cli.main(asked) == 0
    assert not (place / "failed.txt").exists()
    assert (place / "result.json").exists()


def test_an_array_writes_logs_where_there_is_a_folder_and_ends_with_the_tables(
    mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my sweep"
    assert cli.main(["sweep", mine, "--out", str(folder), "--slurm"]) == 0
    script = capsys.readouterr().out
    (output,) = (
        line.partition("=")[2] for line in script.splitlines() if line.startswith("#SBATCH --output")
    )
    assert Path(shlex.split(output)[0]).parent.is_dir()
    told = [line.removeprefix("#").strip() for line in script.splitlines() if line.startswith("#   ")]
    assert shlex.split(told[0]) == ["mkdir", "-p", str(folder / ".logs")]
    again = shlex.split(told[1])
    assert again[1:4] == ["-m", "tracer", "sweep"]
    assert "--only" not in again
    assert str(folder) in again


def test_slurm_and_dry_run_show_and_run_nothing(
    mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "sweep"
    assert cli.main(["sweep", mine, "--out", str(folder), "--slurm", "--jobs", "3"]) == 0
    script = capsys.readouterr().out
    assert "#SBATCH --array=0-3%3" in script
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
    assert cli.main(["sweep", mine, "--out", str(folder), "--dry-run"]) == 0
    assert "4 runs" in capsys.readouterr().out
    assert not list(folder.glob("*/*"))
    assert cli.main(["sweep", mine, "--out", str(folder), "--only", "9"]) == 2
    assert cli.main(["sweep", mine, "--out", str(folder), "--jobs", "0"]) == 2
