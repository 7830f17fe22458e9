"""Run all experiments of a recipe, resumable: `tracer sweep RECIPE`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tracer.api.terminal import console, errors, put, say
from tracer.cli.flags import call, parse, summary
from tracer.core.errors import UserError, at_least
from tracer.evaluation.suites.imagenet import COMPLETE, check
from tracer.recipes import ablation, paper
from tracer.runs.experiment import Experiment
from tracer.storage.atomic import write_text
from tracer.sweep import Sweep, recipe
from tracer.sweep.recipe import recipes
from tracer.sweep.shrink import shrunk
from tracer.sweep.slurm import array_script, logs
from tracer.sweep.supervisor import SweepProgress, supervise
from tracer.sweep.tables import closing_sentences, write_tables
from tracer.sweep.worker import FAILED, Orphaned, work
from tracer.training.interrupt import Interrupted

EXAMPLE = "tracer.recipes.ablation:beta"


@dataclass(frozen=True, kw_only=True)
class Flags:
    """Run every experiment of a recipe: a Python function that returns them.

    Examples:
      tracer sweep tracer.recipes.ablation:beta --dry-run           list the runs and stop
      tracer sweep tracer.recipes.ablation:beta --values 0.2 1      with flags of the recipe
      tracer sweep tracer.recipes.ablation:beta --jobs 2            two runs at a time
      tracer sweep mine.py:study --out runs/study            a recipe in your own file (docs/sweeps.md)
      tracer sweep mine.py:study --slurm > study.sbatch      the same as a SLURM array

    After a crash or Ctrl-C, run the same command again: finished runs are skipped, others resume.
    """

    out: Path | None = None
    """Folder of the runs; by default runs/FUNCTION. Finished runs in it are skipped."""
    jobs: int = 1
    """Number of parallel runs."""
    device: str = "auto"
    """auto, cpu, cuda or mps."""
    slurm: bool = False
    """Print a SLURM array script instead of running."""
    shrink: int | None = None
    """Rehearse: 1/N of the steps, a tiny model with random weights, and test sets as they are."""
    allow_partial: bool = False
    """Where a recipe scores its runs on test sets: score incomplete ones too, and mark their scores."""
    workers: int = 0
    """Processes that decode the images of each run; 4 to 16 for large images on a GPU."""
    dry_run: bool = False
    """List the runs with their settings, steps, warm-up and memory, and the data found and missing, and stop."""
    only: int | None = None
    """Run one experiment of the sweep, by its number in --dry-run."""
    worker: bool = False
    """Work on the runs in --out beside other workers, on this machine or others, without progress and tables."""


def main(arguments: list[str]) -> int:
    name = next((word for word in arguments if ":" in word and not word.startswith("-")), None)
    if name is None:
        parse((Flags,), arguments, "tracer sweep RECIPE", summary(Flags), after=_recipes())
        raise UserError(
            f"tracer sweep needs a recipe, MODULE:FUNCTION or FILE.py:FUNCTION: tracer sweep {EXAMPLE}"
        )
    function = recipe(name)
    words = [word for word in arguments if word != name]
    values = parse((function, Flags), words, f"tracer sweep {name}", summary(function))
    flags, sweep = call(Flags, values), _sweep(call(function, values))
    at_least(1, jobs=flags.jobs, shrink=flags.shrink)
    at_least(0, workers=flags.workers)
    if flags.shrink is not None:
        sweep = shrunk(sweep, flags.shrink)
    if flags.allow_partial and sweep.tests is not None:
        sweep = replace(sweep, tests=replace(sweep.tests, allow_partial=True))
    title = name.rpartition(":")[2]
    folder = flags.out or Path("runs") / title
    if flags.dry_run:
        from tracer.cli.sweep_dry_run import dry_run

        return dry_run(sweep, folder)
    _require_test_sets(sweep)
    words = [word for word in words if word != "--slurm"]
    command = [sys.executable, "-m", "tracer", "sweep", name, *words, "--out", str(folder)]
    if flags.slurm:
        logs(folder).mkdir(parents=True, exist_ok=True)
        count = len(sweep.by_folder(folder))
        put(array_script(f"tracer-{title}", count, flags.jobs, folder, command).rstrip("\n"))
        return 0
    if flags.worker or flags.only is not None:
        return _work(sweep, folder, flags)
    from tracer.sweep.plans import require_sweep_room  # it imports open_clip

    require_sweep_room(sweep, folder)
    return _run(sweep, folder, [*command, "--worker"], flags.jobs)


def _recipes() -> str:
    """The recipes of this package, each with the first line of its docstring."""
    lines: list[str] = []
    for module in (ablation, paper):
        lines += ["", f"Recipes in {module.__name__} (RECIPE --help shows more):"]
        lines += [f"  {key:15}{str(each.__doc__).splitlines()[0]}" for key, each in recipes(module).items()]
    return "\n".join(lines[1:])


def _sweep(value: Any) -> Sweep:
    if isinstance(value, Sweep):
        return value
    experiments = (value,) if isinstance(value, Experiment) else tuple(value or ())
    if not all(isinstance(one, Experiment) for one in experiments):
        raise UserError("a recipe returns a Sweep, an Experiment, or several of them")
    return Sweep(experiments)


def _require_test_sets(sweep: Sweep) -> None:
    """Raise UserError if test sets are missing: rather now than after days of training."""
    if sweep.tests is None or sweep.tests.suite != "imagenet" or sweep.tests.allow_partial:
        return
    missing = [line for line in check(sweep.tests.root) if not line.startswith(COMPLETE)]
    if missing:
        advice = "--allow-partial scores what is there and marks every number it touches"
        raise UserError("\n".join(("the test sets of this recipe are not complete:", *missing, advice)))


def _work(sweep: Sweep, folder: Path, flags: Flags) -> int:
    """Run as one worker, or one experiment with --only. Returns the exit code."""
    folders = list(sweep.by_folder(folder))
    if flags.only is not None and not 0 <= flags.only < len(folders):
        raise UserError(f"--only {flags.only}: the sweep has experiments 0 to {len(folders) - 1}")
    try:
        work(sweep, folder, flags.device, flags.only, workers=flags.workers)
    except Interrupted as stop:
        return 128 + stop.signal_number
    except Orphaned as error:
        say(str(error), to=errors)
        return 1
    return _failed([folders[flags.only]]) if flags.only is not None else 0


def _failed(folders: Sequence[Path]) -> int:
    """Print the errors of these runs. Returns 1 if any has failed."""
    messages = [f"{run}: {(run / FAILED).read_text().strip()}" for run in folders if (run / FAILED).exists()]
    for message in messages:
        say(message, to=errors)
    return int(bool(messages))


def _run(sweep: Sweep, folder: Path, command: list[str], jobs: int) -> int:
    bar = Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    shown, now = None, None
    try:
        with bar:
            task = bar.add_task(folder.name, total=1.0, state="")
            for now in supervise(sweep, folder, command, jobs):
                bar.update(task, completed=now.share, state=_state(now))
                if not console.is_terminal and (now.done, now.starting) != shown:
                    say(f"{folder.name}: {_state(now)}")
                    shown = now.done, now.starting
    except KeyboardInterrupt:  # the workers have saved their runs
        say("the runs are saved: run the same command to continue", to=errors)
        raise
    assert now is not None  # there is a last state, when all workers have ended
    return _finish(sweep, folder, now)


def _state(now: SweepProgress) -> str:
    from tracer.report.table import duration

    text = f"{now.done} of {now.total} runs"
    if now.failed:
        text += f", {len(now.failed)} failed"
    if now.starting:
        text += ", making the model that they start from"
    if now.seconds_left is not None and now.done < now.total:
        text += f", {duration(now.seconds_left)} left"
    return text


def _finish(sweep: Sweep, folder: Path, now: SweepProgress) -> int:
    """Print errors, and write tables and a report of the finished runs. Returns the exit code."""
    from tracer.report import write_report
    from tracer.report.run_data import read_run

    _failed(now.failed)
    for log in now.crashed:
        say(f"{log}: {log.read_text(errors='replace').strip()[-2000:]}", to=errors)
    if now.done:
        finished = [run for run in sweep.by_folder(folder) if (run / "result.json").exists()]
        write_tables(sweep, folder)
        write_report(finished, folder / "report.html")
        files = [folder / name for name in ("table.md", "table.csv", "report.html")]
        if sweep.published is not None and sweep.tests is not None:
            text = sweep.published(sweep.by_folder(folder))
            write_text(folder / "paper.md", text)
            say(text)
            files.append(folder / "paper.md")
        say(", ".join(map(str, files)))
        for sentence in closing_sentences([read_run(run) for run in finished]):
            say(sentence)
    if now.done < now.total:
        left = now.total - now.done - len(now.failed)
        say(f"{len(now.failed)} failed, {left} not finished: run the same command to continue", to=errors)
        return 1
    return 0
