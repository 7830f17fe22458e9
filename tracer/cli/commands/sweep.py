"""Run all experiments of a recipe, in parallel and resumable: `tracer sweep RECIPE`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tracer.cli.flags import HELP, cli, cli_of_two, flags_of
from tracer.core.errors import UserError, at_least
from tracer.methods.base import options
from tracer.recipes import ablation
from tracer.runs.experiment import Experiment
from tracer.sweep import Sweep, recipe
from tracer.sweep.recipe import flag_help, recipes
from tracer.sweep.slurm import array_script, logs
from tracer.sweep.supervisor import SweepProgress, supervise, sweep_progress
from tracer.sweep.tables import write_tables
from tracer.sweep.worker import FAILED, Orphaned, work
from tracer.terminal import console, errors, show_table
from tracer.training.interrupt import Interrupted

EXAMPLES = """

Examples:
  tracer sweep tracer.recipes.ablation:beta --dry-run           list the runs and stop
  tracer sweep tracer.recipes.ablation:beta --values 0.2 1      with flags of the recipe
  tracer sweep tracer.recipes.ablation:beta --jobs 2            two runs at a time
  tracer sweep mine.py:study --out runs/study            a recipe in your own file (docs/sweeps.md)
  tracer sweep mine.py:study --slurm > study.sbatch      the same as a SLURM array

After a crash or Ctrl-C, run the same command again: finished runs are skipped, others resume.
"""


@dataclass(frozen=True, kw_only=True)
class Flags:
    """Flags of `tracer sweep`."""

    recipe: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RECIPE")]
    """MODULE:FUNCTION or FILE.py:FUNCTION, e.g. tracer.recipes.ablation:beta."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Folder of the runs; by default runs/FUNCTION. Finished runs in it are skipped."""
    jobs: int = 1
    """Number of parallel runs."""
    device: str = "auto"
    """auto, cpu, cuda or mps."""
    slurm: bool = False
    """Print a SLURM array script instead of running."""
    dry_run: bool = False
    """List the runs and stop."""
    only: Annotated[int | None, tyro.conf.arg(metavar="NUMBER")] = None
    """Run one experiment of the sweep, by its number in --dry-run."""
    worker: bool = False
    """Work on the runs in --out beside other workers, on this machine or others, without progress and tables."""


def main(arguments: list[str]) -> int:
    about = f"Run every experiment of a recipe: a Python function that returns them.{_details(arguments)}{EXAMPLES}"
    flags, rest = cli_of_two(Flags, arguments, "tracer sweep", about)
    at_least(1, jobs=flags.jobs)
    function = recipe(flags.recipe)
    sweep = _sweep(cli(function, rest, f"tracer sweep {flags.recipe}", also=flags_of(Flags)))
    folder = flags.out or Path("runs") / flags.recipe.rpartition(":")[2]
    command = [sys.executable, "-m", "tracer", "sweep", flags.recipe, *rest]
    command += ["--out", str(folder), "--device", flags.device]
    if flags.dry_run:
        return _show(sweep, folder)
    if flags.slurm:
        name = f"tracer-{flags.recipe.rpartition(':')[2]}"
        logs(folder).mkdir(parents=True, exist_ok=True)
        print(array_script(name, len(sweep.by_folder(folder)), flags.jobs, folder, command), end="")  # noqa: T201
        return 0
    if flags.worker or flags.only is not None:
        return _work(sweep, folder, flags)
    return _run(sweep, folder, [*command, "--worker"], flags.jobs)


def _details(arguments: list[str]) -> str:
    """For --help: the flags of the recipe in the arguments, or a list of recipes if there is none."""
    if not HELP & set(arguments):
        return ""
    name = next((word for word in arguments if ":" in word and not word.startswith("-")), None)
    if name is None:
        lines = [f"  {name:12}{_summary(function)}" for name, function in recipes(ablation).items()]
        return "\n".join(["", "", "Recipes in tracer.recipes.ablation (RECIPE --help shows more):", *lines])
    function = recipe(name)
    texts = flag_help(function)
    flags = [
        _flag(each, texts.get(each.name, "")) for each in inspect.signature(function).parameters.values()
    ]
    text = (inspect.getdoc(function) or name).partition("\nArgs:")[0].strip()
    return "\n".join(["", "", text, "", f"Flags of {name}:", *(flags or ["  none"])])


def _summary(function: Callable[..., Any]) -> str:
    return (inspect.getdoc(function) or "").split("\n")[0]


def _flag(parameter: inspect.Parameter, text: str) -> str:
    from tracer.report.comparison import show

    required = parameter.default is inspect.Parameter.empty
    default = "required" if required else f"default: {show(parameter.default) or 'none'}"
    return f"  --{parameter.name.replace('_', '-')} ({default})  {text}".rstrip()


def _sweep(value: Any) -> Sweep:
    if isinstance(value, Sweep):
        return value
    experiments = (value,) if isinstance(value, Experiment) else tuple(value or ())
    if not all(isinstance(one, Experiment) for one in experiments):
        raise UserError("a recipe returns a Sweep, an Experiment, or several of them")
    return Sweep(experiments)


def _work(sweep: Sweep, folder: Path, flags: Flags) -> int:
    """Run as one worker, or one experiment with --only. Returns the exit code."""
    folders = list(sweep.by_folder(folder))
    if flags.only is not None and not 0 <= flags.only < len(folders):
        raise UserError(f"--only {flags.only}: the sweep has experiments 0 to {len(folders) - 1}")
    try:
        work(sweep, folder, flags.device, flags.only)
    except Interrupted as stop:
        return 128 + stop.signal_number
    except Orphaned as error:
        errors.print(str(error), markup=False)
        return 1
    return _failed([folders[flags.only]]) if flags.only is not None else 0


def _failed(folders: Sequence[Path]) -> int:
    """Print the errors of these runs. Returns 1 if any has failed."""
    messages = [f"{run}: {(run / FAILED).read_text().strip()}" for run in folders if (run / FAILED).exists()]
    for message in messages:
        errors.print(message, highlight=False, markup=False)
    return int(bool(messages))


def _show(sweep: Sweep, folder: Path) -> int:
    """List the runs: of the first what differs from the defaults, of the others what differs from the first."""
    experiments = sweep.by_folder(folder)
    first: Experiment | None = None
    rows = []
    for number, (run, experiment) in enumerate(experiments.items()):
        state = "done" if (run / "result.json").exists() else "started" if run.exists() else ""
        rows.append((str(number), run.name, _differences(experiment, first), state))
        first = first or experiment
    columns = ("number", "run", "settings; from 1 on, what differs from 0", "state")
    show_table(f"{len(experiments)} runs in {folder}", columns, rows)
    return 0


def _differences(experiment: Experiment, first: Experiment | None) -> str:
    """Settings and options that are not those of the first experiment; of the first itself, not the defaults."""
    from tracer.report.comparison import show

    defaults = Experiment(data="", method=experiment.method)
    own, usual = _flat(experiment), _flat(defaults) | ({} if first is None else _flat(first))
    names = [name for name in own if own[name] != usual[name] or (first is None and name == "method")]
    return ", ".join(f"{name} {show(own[name])}" for name in names)


def _flat(experiment: Experiment) -> dict[str, Any]:
    """All settings and options by name, with the defaults of the method's options filled in."""
    settings = experiment.to_json()
    chosen = settings.pop("options")
    return settings | {option.name: option.default for option in options(experiment.method)} | chosen


def _run(sweep: Sweep, folder: Path, command: list[str], jobs: int) -> int:
    bar = Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    shown, now = None, sweep_progress(sweep, folder)
    with bar:
        task = bar.add_task(folder.name, total=1.0, state="")
        for now in supervise(sweep, folder, command, jobs):
            bar.update(task, completed=now.share, state=_state(now))
            if not console.is_terminal and (now.done, now.starting) != shown:
                console.print(f"{folder.name}: {_state(now)}", highlight=False, markup=False)
                shown = now.done, now.starting
    return _finish(sweep, folder, now.crashed)


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


def _finish(sweep: Sweep, folder: Path, crashed: tuple[Path, ...]) -> int:
    """Print errors, and write tables and a report of the finished runs. Returns the exit code."""
    from tracer.report import write_report

    now = sweep_progress(sweep, folder)
    _failed(now.failed)
    for log in crashed:
        errors.print(
            f"{log}: {log.read_text(errors='replace').strip()[-2000:]}", highlight=False, markup=False
        )
    if now.done:
        write_tables(sweep, folder)
        write_report(
            [run for run in sweep.by_folder(folder) if (run / "result.json").exists()],
            folder / "report.html",
        )
        console.print(
            f"{folder / 'table.md'}, {folder / 'table.csv'}, {folder / 'report.html'}", highlight=False
        )
    if now.done < now.total:
        left = now.total - now.done - len(now.failed)
        errors.print(
            f"{len(now.failed)} failed, {left} not finished: run the same command to continue",
            highlight=False,
        )
        return 1
    return 0
