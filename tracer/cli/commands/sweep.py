"""A product of settings, several at a time, safe to stop and start: `tracer sweep RECIPE`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tracer.cli.console import console, errors, show_table
from tracer.core.errors import UserError, at_least
from tracer.recipes import ablation
from tracer.runs.experiment import Experiment
from tracer.sweep import Sweep, recipe
from tracer.sweep.crew import Standing, oversee, standing
from tracer.sweep.recipe import described, recipes
from tracer.sweep.slurm import array_script, logs
from tracer.sweep.tables import write_tables
from tracer.sweep.worker import FAILED, Orphaned, work
from tracer.training.interrupt import Interrupted

EXAMPLES = """

Examples:
  tracer sweep tracer.recipes.ablation:beta --dry-run           what would run, and stop
  tracer sweep tracer.recipes.ablation:beta --values 0.2 1      with flags of the recipe's own
  tracer sweep tracer.recipes.ablation:beta --jobs 2            two runs at a time
  tracer sweep mine.py:study --out runs/study            a recipe in a file of yours (docs/sweeps.md)
  tracer sweep mine.py:study --slurm > study.sbatch      the same as a SLURM array

After a crash or Ctrl-C the same command goes on: what is finished is not run again.
"""


@dataclass(frozen=True, kw_only=True)
class Flags:
    """What the command line says about a sweep."""

    recipe: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RECIPE")]
    """MODULE:FUNCTION or FILE.py:FUNCTION, e.g. tracer.recipes.ablation:beta."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where the runs go; by default runs/FUNCTION. What is finished there is not run again."""
    jobs: int = 1
    """Runs at a time."""
    device: str = "auto"
    """auto, cpu, cuda or mps."""
    slurm: bool = False
    """Print a SLURM array script instead of running."""
    dry_run: bool = False
    """Show what would run, and stop."""
    only: Annotated[int | None, tyro.conf.arg(metavar="NUMBER")] = None
    """Run one experiment of the sweep, by its number in --dry-run."""
    worker: bool = False
    """Be one worker on the runs in --out, on this machine or another: no progress, no tables."""


def main(arguments: list[str]) -> int:
    told = _about(arguments)
    flags, rest = tyro.cli(
        Flags,
        args=arguments,
        prog="tracer sweep",
        description=f"Run every experiment of a recipe: a Python function that returns them.{told}{EXAMPLES}",
        return_unknown_args=True,
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    at_least(1, jobs=flags.jobs)
    made = recipe(flags.recipe)
    sweep = _sweep(tyro.cli(made, args=rest, prog=f"tracer sweep {flags.recipe}"))
    folder = flags.out or Path("runs") / flags.recipe.rpartition(":")[2]
    again = [
        sys.executable,
        "-m",
        "tracer",
        "sweep",
        flags.recipe,
        *rest,
        "--out",
        str(folder),
        "--device",
        flags.device,
    ]
    if flags.dry_run:
        return _show(sweep, folder)
    if flags.slurm:
        name = f"tracer-{flags.recipe.rpartition(':')[2]}"
        logs(folder).mkdir(parents=True, exist_ok=True)
        print(array_script(name, len(sweep.placed(folder)), flags.jobs, folder, again), end="")  # noqa: T201
        return 0
    if flags.worker or flags.only is not None:
        return _work(sweep, folder, flags)
    return _run(sweep, folder, [*again, "--worker"], flags.jobs)


def _about(arguments: list[str]) -> str:
    """For --help: the recipe named and its own flags, or the recipes that there are."""
    if not {"-h", "--help"} & set(arguments):
        return ""
    named = next((word for word in arguments if ":" in word and not word.startswith("-")), None)
    if named is None:
        lines = [f"  {name:12}{_sentence(found)}" for name, found in recipes(ablation).items()]
        told = "\n".join(["Recipes in tracer.recipes.ablation (RECIPE --help tells more):", *lines])
        return f"\n\n{told}"
    found = recipe(named)
    told = described(found)
    own = [_flag(each, told.get(each.name, "")) for each in inspect.signature(found).parameters.values()]
    text = (inspect.getdoc(found) or named).partition("\nArgs:")[0].strip()
    return "\n".join(["", "", text, "", f"Flags of {named}:", *(own or ["  none"])])


def _sentence(found: Callable[..., Any]) -> str:
    return (inspect.getdoc(found) or "").split("\n")[0]


def _flag(parameter: inspect.Parameter, told: str) -> str:
    from tracer.report.comparison import show

    needed = parameter.default is inspect.Parameter.empty
    default = "required" if needed else f"default: {show(parameter.default) or 'none'}"
    return f"  --{parameter.name.replace('_', '-')} ({default})  {told}".rstrip()


def _sweep(value: Any) -> Sweep:
    if isinstance(value, Sweep):
        return value
    experiments = (value,) if isinstance(value, Experiment) else tuple(value or ())
    if not all(isinstance(one, Experiment) for one in experiments):
        raise UserError("a recipe returns a Sweep, an Experiment, or several of them")
    return Sweep(experiments)


def _work(sweep: Sweep, folder: Path, flags: Flags) -> int:
    places = list(sweep.placed(folder))
    if flags.only is not None and not 0 <= flags.only < len(places):
        raise UserError(f"--only {flags.only}: the sweep has experiments 0 to {len(places) - 1}")
    try:
        work(sweep, folder, flags.device, flags.only)
    except Interrupted as stop:
        return 128 + stop.signal_number
    except Orphaned as left:
        errors.print(str(left), markup=False)
        return 1
    return _failed([places[flags.only]]) if flags.only is not None else 0


def _failed(places: Sequence[Path]) -> int:
    """Say why each of these failed; 1 if any did."""
    why = [
        f"{place}: {(place / FAILED).read_text().strip()}" for place in places if (place / FAILED).exists()
    ]
    for line in why:
        errors.print(line, highlight=False, markup=False)
    return int(bool(why))


def _show(sweep: Sweep, folder: Path) -> int:
    from tracer.report.comparison import show

    placed = sweep.placed(folder)
    rows = []
    for number, (place, experiment) in enumerate(placed.items()):
        state = "done" if (place / "result.json").exists() else "begun" if place.exists() else ""
        options = ", ".join(f"{name} {show(value)}" for name, value in experiment.options.items())
        rows.append((str(number), place.name, experiment.method, options, str(experiment.seed), state))
    show_table(
        f"{len(placed)} runs in {folder}", ("number", "run", "method", "options", "seed", "state"), rows
    )
    return 0


def _run(sweep: Sweep, folder: Path, command: list[str], jobs: int) -> int:
    bar = Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    told, now = None, standing(sweep, folder)
    with bar:
        task = bar.add_task(folder.name, total=1.0, state="")
        for now in oversee(sweep, folder, command, jobs):
            bar.update(task, completed=now.share, state=_state(now))
            if not console.is_terminal and (now.done, now.starting) != told:
                console.print(f"{folder.name}: {_state(now)}", highlight=False, markup=False)
                told = now.done, now.starting
    return _end(sweep, folder, now.crashed)


def _state(now: Standing) -> str:
    from tracer.report.table import duration

    told = f"{now.done} of {now.total} runs"
    if now.failed:
        told += f", {len(now.failed)} failed"
    if now.starting:
        told += ", making the model that they start from"
    if now.seconds_left is not None and now.done < now.total:
        told += f", {duration(now.seconds_left)} left"
    return told


def _end(sweep: Sweep, folder: Path, crashed: tuple[Path, ...]) -> int:
    """Tables and a page of what is finished; what is not is named."""
    from tracer.report import write_report

    now = standing(sweep, folder)
    _failed(now.failed)
    for log in crashed:
        errors.print(
            f"{log}: {log.read_text(errors='replace').strip()[-2000:]}", highlight=False, markup=False
        )
    if now.done:
        write_tables(sweep, folder)
        write_report(
            [place for place in sweep.placed(folder) if (place / "result.json").exists()],
            folder / "report.html",
        )
        console.print(
            f"{folder / 'table.md'}, {folder / 'table.csv'}, {folder / 'report.html'}", highlight=False
        )
    if now.done < now.total:
        left = now.total - now.done - len(now.failed)
        errors.print(
            f"{len(now.failed)} failed, {left} not finished: the same command goes on", highlight=False
        )
        return 1
    return 0
