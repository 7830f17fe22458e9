"""`python -m studies.photoshift COMMAND`: build the model, run the study, repeat one run, write the pages."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from studies.emojishift.measure import FILE, unpacked_bits
from studies.emojishift.rows import write
from studies.figure import save
from studies.photoshift.bridge import PROMPT, bridge
from studies.photoshift.figure import frontiers, moving_teachers
from studies.photoshift.page import FIGURE, WHEN, adapter_tables, moving_gains, tables_page
from studies.photoshift.page import page as text_of_page
from studies.photoshift.pictures import PHOTOS, photos
from studies.photoshift.rows import read, stored, with_starts
from studies.photoshift.runner import Workspace, measured, run_jobs
from studies.photoshift.study import ARM_OF, SCALES, Job, Scale, Setting, jobs
from studies.photoshift.tasks import TASKS
from tracer.api.terminal import say
from tracer.cli.flags import cli
from tracer.core.errors import UserError, at_least, unknown
from tracer.evaluation.predict import Scorer
from tracer.models.student import load
from tracer.parallel import World
from tracer.storage.atomic import write_text
from tracer.storage.cache import cache_folder

CACHE = cache_folder() / "photoshift"
RUNS = Path("runs/photoshift")
RESULTS = Path(__file__).parent / "results"


def build(cache: Path = CACHE, size: tuple[int, ...] = (96, 128, 160), images: int = 10_000) -> None:
    """Fetch packages, build the model at each size, and print its zero-shot accuracy on CIFAR-10.

    Args:
        cache: folder of packages and models, outside of the repository.
        size: pixels of the model's images.
        images: the number of test photographs to score.
    """
    at_least(1, images=images)
    examples = photos(cache, PHOTOS, test=True)
    for pixels in size:
        student, world = load(str(bridge(cache, pixels))), World("cpu", "fp32")
        world.place(student)
        scored = Scorer(student, world).predict(examples.take(range(images)), (PROMPT,))  # pyright: ignore
        say(f"CIFAR-10 at {pixels} pixels: {scored.accuracy:.1%} of {len(scored.label)} ({cache})")


def study(
    scale: tuple[str, ...] = ("quick",),
    cache: Path = CACHE,
    runs: Path = RUNS,
    results: Path | None = None,
    processes: int = 2,
    collect: bool = False,
) -> None:
    """Run every job of the scales that is neither in the result file nor measured yet, and add it to the file.

    Args:
        scale: one or more of quick, part, full, variants (of TRACER), adapters, lengths (of training) and
            knowledge (of the start).
        cache: folder of packages and models.
        runs: folder of the runs.
        results: result file; by default named after the scales, in the folder of the runs.
        processes: processes of one thread each.
        collect: run nothing more: write the result file of what is measured.
    """
    for name in scale:
        if name not in SCALES:
            raise unknown("scale", name, SCALES)
    for size, names in {
        (SCALES[name].size, TASKS[task].names) for name in scale for task in SCALES[name].tasks
    }:
        bridge(cache, size, names)  # once, before processes ask for it at the same time
    file = results or runs / f"{'-'.join(scale)}.json"
    rows = {row.run: row for row in stored(file)[1]} if file.exists() else {}
    every = {job.name: job for name in scale for job in jobs(SCALES[name])}.values()
    wanted = [
        job for job in every if job.name not in rows and (not collect or (runs / job.name / FILE).exists())
    ]
    say(f"{len(every) - len(wanted)} of {len(every)} runs are measured or left out")
    for each in run_jobs(wanted, Workspace(cache, runs, processes), say):
        rows[each.run] = each
        ordered = sorted(
            rows.values(),
            key=lambda row: (list(TASKS).index(row.study), row.seed, row.arm, row.rate, row.strength or 0),
        )
        write(file, ordered, f"python -m studies.photoshift study --scale {' '.join(scale)}")
    say(f"results: {file}")


def page(results: Path, out: Path) -> None:
    """Write the page of a result file, and beside it its tables and figures.

    Args:
        results: result file.
        out: Markdown page.
    """
    head, rows = read(results)
    tables = out.with_stem(f"{out.stem}-tables")
    write_text(out, text_of_page(rows, tables.name))
    write_text(tables, tables_page(head, rows, out.name))
    for figure, place in ((frontiers(rows), FIGURE), (moving_teachers(dict(moving_gains(rows))), WHEN)):
        save(figure, out.parent / place.parent, place.stem, ["svg"])
    say(f"page: {out}")


def adapters(results: tuple[Path, ...] = (RESULTS / "photoshift.json", RESULTS / "adapters.json")) -> None:
    """Print the tables of docs/adapters.md.

    Args:
        results: result files of the whole tower, and of adapters.
    """
    rows = {row.run: row for file in results for row in stored(file)[1]}
    say(adapter_tables(with_starts(list(rows.values()))))


def run(
    task: str,
    arm: str,
    /,
    rate: float = 3e-4,
    strength: float | None = None,
    seed: int = 0,
    size: int = 64,
    cache: Path = CACHE,
    runs: Path = RUNS,
) -> None:
    """Carry out one run of the study, unless it is there, and print its accuracies.

    Args:
        task: name of a task.
        arm: name of an arm.
        rate: learning rate.
        strength: λ, for methods that have one.
        seed: seed of the training pictures and of training.
        size: pixels of the model's images.
        cache: folder of packages and models.
        runs: folder of the runs.
    """
    if task not in TASKS:
        raise unknown("task", task, TASKS)
    if arm not in ARM_OF:
        raise unknown("arm", arm, ARM_OF)
    job = Job(task, arm, Setting(rate, strength), seed, Scale((task,), 1, size))
    measures = measured(Workspace(cache, runs), job)
    for alpha, scores in measures["scores"].items():
        shares = {name: unpacked_bits(each["right"], each["n"]).mean() for name, each in scores.items()}
        say(f"α = {alpha}: " + ", ".join(f"{name} {share:.1%}" for name, share in shares.items()))


COMMANDS = {"build": build, "study": study, "page": page, "adapters": adapters, "run": run}


def main() -> int:
    warnings.simplefilter("ignore")
    try:
        name, *arguments = sys.argv[1:] or ["--help"]
        if name not in COMMANDS:
            raise unknown("command of python -m studies.photoshift", name, COMMANDS)
        cli(COMMANDS[name], arguments, f"python -m studies.photoshift {name}")
    except UserError as error:
        sys.exit(f"error: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
