"""How a run changed the model, layer by layer: `tracer analyse RUN`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracer.analysis.similarity import MIN_SAMPLES
from tracer.api.terminal import console, errors, percent, say, show_table
from tracer.cli.flags import command
from tracer.core.command_line import command_line
from tracer.core.errors import UserError, at_least
from tracer.parallel import World
from tracer.report.run_data import find_runs
from tracer.runs.plan import plan
from tracer.runs.run import Run
from tracer.storage.atomic import write_json


@command("tracer analyse")
def main(
    runs: tuple[Path, ...],
    /,
    samples: int = 50_000,
    batch: int = 256,
    stops: int = 11,
    device: str = "auto",
) -> int:
    """Compare the result of a finished run with its pretrained model, on the run's held-out images.

    Writes analysis.json into the run's folder, which `tracer report` shows: CKA, SVCCA and weight drift by layer, the
    share of the embeddings' change inside the task's subspace, reliability, and accuracy along the linear path between
    the two models (WiSE-FT).

    Examples:
      tracer analyse runs/1a2b3c                     then: tracer report runs/1a2b3c
      tracer analyse runs/beta                       every finished run of a sweep
      tracer analyse runs/1a2b3c --samples 500       faster, on fewer images
      tracer analyse runs/1a2b3c --stops 21          more points on the path

    Args:
        runs: directories of finished runs, or folders that contain some (a sweep, the demo).
        samples: maximum number of held-out images.
        batch: images per forward pass.
        stops: points on the path from the pretrained weights (0) to the result (1).
        device: auto, cpu, cuda or mps.
    """
    at_least(MIN_SAMPLES, samples=samples)
    at_least(1, batch=batch)
    at_least(2, stops=stops)
    opened = [Run.open(folder) for folder in find_runs(runs)]
    finished = [run for run in opened if run.finished]
    if not finished:
        opened[0].require_finished()
    for run in opened:
        if not run.finished:
            say(f"{run.folder} is not finished and is skipped", to=errors)
    for run in finished:
        images = run.description.get("data", {}).get("held_out", MIN_SAMPLES)
        if images < MIN_SAMPLES:  # too few to compute the similarity of layers
            raise UserError(
                f"{run.folder} has {images} held-out images: an analysis needs {MIN_SAMPLES} or more"
            )
    alphas = tuple(i / (stops - 1) for i in range(stops))
    for run in finished:
        _analyse(run, device, samples=samples, batch=batch, alphas=alphas)
    return 0


def _analyse(run: Run, device: str, **options: Any) -> None:
    """Analyse one run, write analysis.json into its folder, and print it."""
    from tracer.analysis.run_analysis import analyse_run

    run.require_named_sources()
    run_plan = plan(run.experiment)
    run.require(run_plan)
    world = World(device, run_plan.experiment.precision)
    analysis: dict[str, Any] = {"data": run_plan.held_out.name}
    with console.status("loading") as status:
        for part, value in analyse_run(run_plan, run, world, **options):
            analysis[part] = value
            status.update(f"{run.folder}: {part.replace('_', ' ')} done")
    write_json(run.folder / "analysis.json", analysis)
    _show(analysis, run.folder)


def _show(analysis: dict[str, Any], run: Path) -> None:
    drifts = {row["layer"]: row["relative"] for row in analysis["drift"] if row["tower"] == "image"}
    rows = [
        (row["layer"], _number(row["cka"]), _number(row["svcca"]), _number(drifts.get(row["layer"])))
        for row in analysis["layers"]
    ]
    show_table(f"{run} against its pretrained model", ("layer", "CKA", "SVCCA", "relative drift"), rows)
    if share := analysis.get("task_share"):
        inside = f"{percent(share['inside'])} of the embeddings' change lies in the span of the class names"
        say(f"{inside} ({percent(share['chance'])} by chance)")
    say(f"written to {run / 'analysis.json'}. Next: {command_line('report', run)}")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
