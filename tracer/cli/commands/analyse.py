"""What a run did inside the model, layer by layer: `tracer analyse RUN`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import tyro

from tracer.analysis.cka import FEWEST
from tracer.analysis.drift import place
from tracer.cli.console import console, errors, percent, show_table
from tracer.core.errors import UserError, at_least
from tracer.parallel import World
from tracer.report.account import find_runs
from tracer.runs.plan import plan
from tracer.runs.run import Run
from tracer.storage.atomic import write_json

ABOUT = """\
Compare the result of a finished run with its pretrained model, on the run's held-out images.

Writes analysis.json into the run, which `tracer report` shows: CKA, SVCCA and drift by layer, the share of movement
inside the task's subspace, reliability, and accuracy along the straight path between the two (WiSE-FT). The forgetting
meter tells for each linear layer of the image tower how much of its update lies in the span of what training images
send through it, and what the update does to images of the run's --retain data (docs/theory.md).

Examples:
  tracer analyse runs/1a2b3c                     then: tracer report runs/1a2b3c
  tracer analyse runs/beta                       every finished run of a sweep
  tracer analyse runs/1a2b3c --samples 500       a quick look, on fewer images
  tracer analyse runs/1a2b3c --stops 21          a finer path
"""


def main(arguments: list[str]) -> int:
    def analyse(
        runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN [RUN …]")] = (),
        samples: int = 50_000,
        batch: int = 256,
        stops: int = 11,
        device: str = "auto",
    ) -> int:
        """Compare the result with the pretrained model on the run's held-out images.

        Args:
            runs: directories of finished runs, or folders that hold some (a sweep, the demo).
            samples: held-out images to look at, at most.
            batch: images at a time.
            stops: points on the path from the pretrained weights (0) to the result (1).
            device: auto, cpu, cuda or mps.
        """
        if not runs:
            raise UserError("name at least one run: tracer analyse runs/1a2b3c")
        at_least(FEWEST, samples=samples)
        at_least(1, batch=batch)
        at_least(2, stops=stops)
        found = [Run.open(folder) for folder in find_runs(runs)]
        unfinished = [run.folder for run in found if not run.finished]
        if len(unfinished) == len(found):
            raise UserError(f"{unfinished[0]} is not finished: go on with tracer resume {unfinished[0]}")
        for folder in unfinished:
            errors.print(f"{folder} is not finished and left out", highlight=False, markup=False)
        _refuse_few(run for run in found if run.finished)
        alphas = tuple(i / (stops - 1) for i in range(stops))
        for run in found:
            if run.finished:
                _analyse(run, device, samples=samples, batch=batch, alphas=alphas)
        return 0

    return tyro.cli(analyse, args=arguments, prog="tracer analyse", description=ABOUT)


def _refuse_few(runs: Iterable[Run]) -> None:
    """The likeness of layers is not defined on fewer images."""
    for run in runs:
        images = run.description.get("data", {}).get("held_out", FEWEST)
        if images < FEWEST:
            raise UserError(f"{run.folder} has {images} held-out images: an analysis needs {FEWEST} or more")


def _analyse(run: Run, device: str, **asked: Any) -> None:
    """Examine one run, write what was found into it, and show it."""
    from tracer.analysis.examine import examine

    made = plan(run.experiment)
    world = World(device, made.experiment.precision)
    analysis: dict[str, Any] = {"data": made.held_out.name}
    with console.status("loading") as status:
        for part, value in examine(made, run, world, **asked):
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
    _show_meter(analysis["meter"])
    if share := analysis.get("task_share"):
        told = f"{percent(share['inside'])} of the embeddings' movement lies in the span of the class names"
        console.print(f"{told} ({percent(share['chance'])} by chance)", highlight=False, markup=False)
    console.print(
        f"written to {run / 'analysis.json'}. Next: tracer report {run}", highlight=False, markup=False
    )


def _show_meter(meter: dict[str, Any]) -> None:
    """For each layer the update and its share inside the task, and the change of retained features by its origin."""
    if "skipped" in meter:
        console.print(f"no forgetting meter: {meter['skipped']}", highlight=False, markup=False)
        return
    kept = {row["layer"]: row for row in meter["features"]}
    rows = [
        (
            _short(row["layer"]),
            _number(math.hypot(row["inside"], row["outside"])),
            _number(row["share"]),
            _number(row["chance"]),
            *(_number(kept.get(row["layer"], {}).get(part)) for part in ("inside", "outside", "inherited")),
        )
        for row in meter["weights"]
    ]
    heads = ("layer", "‖ΔW‖", "in task", "chance", "inside", "outside", "inherited")
    show_table(
        "Forgetting meter: the update's share in the task, and the change of retained features", heads, rows
    )
    told = f"{_number(meter['share'])} of the whole update lies inside the task ({_number(meter['chance'])} by chance)"
    console.print(told, highlight=False, markup=False)


def _short(layer: str) -> str:
    """`visual.transformer.resblocks.0.attn.out_proj` is `block 1 attn.out_proj`."""
    _, block = place(f"clip.{layer}")
    *before, own = re.split(r"\.\d+\.", layer)
    return f"{block} {own}" if before else block


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
