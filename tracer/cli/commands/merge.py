"""Merge finished runs with their pretrained model or with each other: `tracer merge RUN… --wise 0:1:0.1`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from tracer.cli.console import console, percent, show_table
from tracer.core.errors import UserError, at_least
from tracer.core.model_stock import By
from tracer.core.projection import Norm
from tracer.data.examples import Examples
from tracer.data.scan import scan
from tracer.data.sources import load as load_data
from tracer.data.split import aligned
from tracer.merging import ways
from tracer.merging.family import Family, family, same_held_out
from tracer.merging.inference import Kind, Pair
from tracer.merging.judge import Judge, Verdict
from tracer.merging.ways import Merged
from tracer.merging.wise import alphas
from tracer.parallel import World
from tracer.runs.run import Run
from tracer.storage.atomic import write_json

EXAMPLES = """

Examples:
  tracer merge runs/1a2b3c --wise 0:1:0.1              a sweep, the best α chosen on held-out data
  tracer merge runs/1a2b3c --wise 0:1:0.1 --keep 0.98  the strongest that keeps 98 % of what it knew
  tracer merge runs/a runs/b runs/c --soup greedy      a mean of the runs that help
"""


@dataclass(frozen=True, kw_only=True)
class Flags:
    """One way to merge, and what to judge it by."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Directories of finished runs."""
    wise: str | None = None
    """Interpolate with the pretrained model: an α, or a sweep start:stop:step."""
    paint: str | None = None
    """Interpolate the image tower alone; of a sweep, the best mean of task and retained accuracy."""
    fisher: str | None = None
    """Interpolate, each weight by how sure either model is of it."""
    soup: str | None = None
    """The mean of several runs: uniform, or greedy on held-out data."""
    stock: By | None = None
    """Model Stock of several runs: one ratio a tensor, or one a row."""
    tpgm: Norm | None = None
    """Draw weights back to radii learned on held-out data: distances by rows, or of whole tensors."""
    dawin: Kind | None = None
    """Measure DaWin, which interpolates anew for each image: by samples, or clustered."""
    ensemble: float | None = None
    """Measure the ensemble of outputs, with this weight on the finetuned model."""

    keep: float | None = None
    """Take the strongest adaptation that retains this share of what the pretrained model can do."""
    extrapolate: bool = False
    """Allow α outside [0, 1]."""
    steps: int = 200
    """Steps in which TPGM learns its radii."""
    weights: str = "result"
    """Which weights of the runs: result, student or teacher."""
    held_out: str | None = None
    """Data to choose by, instead of what the run held out; for dawin and ensemble, data to measure on."""
    retain: tuple[str, ...] = ()
    """Data whose accuracy should survive, instead of the run's."""
    name: str | None = None
    """Name of the merged weights in the first run."""
    device: str = "auto"
    """auto, cpu, cuda or mps."""


WAYS = ("wise", "paint", "fisher", "soup", "stock", "tpgm", "dawin", "ensemble")


def main(arguments: list[str]) -> int:
    flags = tyro.cli(
        Flags,
        args=arguments,
        prog="tracer merge",
        description=f"Merge finished runs with their pretrained model or with each other.{EXAMPLES}",
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    at_least(1, steps=flags.steps)
    how = _way(flags)
    runs = [Run.open(folder) for folder in flags.runs]
    kin, world = family(runs, flags.weights), World(flags.device, "fp32")
    _check_held_out(flags, runs)
    judge = Judge(
        kin, world, _held_out(flags, kin), tuple(load_data(spec, split="test") for spec in flags.retain)
    )
    if how in ("dawin", "ensemble"):
        return _measure(flags, kin, judge)
    merged = _merge(flags, how, kin, judge)
    return _keep(flags, kin, judge, merged)


def _way(flags: Flags) -> str:
    asked = [way for way in WAYS if getattr(flags, way) is not None]
    if len(asked) != 1:
        told = f"{' and '.join(asked)} are given" if asked else "none is given"
        raise UserError(f"choose one way to merge ({', '.join(WAYS)}): {told}")
    if flags.keep is not None and asked[0] not in ("wise", "paint", "fisher"):
        raise UserError(f"--keep chooses from a sweep of wise, paint or fisher; {asked[0]} has none")
    if asked[0] in ("wise", "paint", "fisher"):
        alphas(getattr(flags, asked[0]), extrapolate=flags.extrapolate)  # refused before any work
    return asked[0]


def _check_held_out(flags: Flags, runs: list[Run]) -> None:
    if flags.held_out is None and flags.soup == "greedy" and not same_held_out(runs):
        names = " and ".join(str(run.folder) for run in runs)
        raise UserError(
            f"a greedy soup needs images that no run has trained on, and {names} held out different ones: "
            "give --held-out"
        )


def _held_out(flags: Flags, kin: Family) -> Examples | None:
    if flags.held_out is None:
        return None
    found = scan(load_data(flags.held_out, split="test"))
    return aligned(found, kin.plan.train.classes) if kin.plan.train.labelled else found


def _merge(flags: Flags, how: str, kin: Family, judge: Judge) -> Merged:
    def swept(spelling: str) -> Merged:
        chosen = alphas(spelling, extrapolate=flags.extrapolate)
        return ways.along(kin, judge, chosen, how, flags.keep)

    table: dict[str, Callable[[], Merged]] = {
        "wise": lambda: swept(flags.wise or ""),
        "paint": lambda: swept(flags.paint or ""),
        "fisher": lambda: swept(flags.fisher or ""),
        "soup": lambda: ways.soup(kin, judge, flags.soup or ""),
        "stock": lambda: ways.stocked(kin, judge, flags.stock or "tensor"),
        "tpgm": lambda: ways.radii(kin, judge, flags.tpgm or "rows", flags.steps),
    }
    return table[how]()


def _keep(flags: Flags, kin: Family, judge: Judge, merged: Merged) -> int:
    """Show what was tried, write the weights into the first run, and say how to use them."""
    run, name = kin.runs[0], flags.name or merged.name
    _show(kin, judge, merged)
    for note in merged.notes:
        console.print(note, highlight=False, markup=False)
    run.keep(name, merged.weights)
    tried = [{"alpha": each.alpha, **each.verdict._asdict()} for each in merged.candidates]
    story = {"way": merged.name, "runs": [str(each.folder) for each in kin.runs], "notes": merged.notes}
    measured = {"before": judge.before._asdict(), "after": merged.verdict._asdict(), "candidates": tried}
    write_json(run.folder / "merges" / f"{name}.json", {**story, **measured, **merged.details})
    console.print(
        f"Kept as {name}. Next: tracer eval {run.folder} --weights {name} --data …", highlight=False
    )
    return 0


def _show(kin: Family, judge: Judge, merged: Merged) -> None:
    retained = list(judge.before.retained) or ["ImageNet names"]

    def row(name: str, verdict: Verdict) -> tuple[str, ...]:
        kept = list(verdict.retained.values()) or [verdict.agreement]
        return (name, percent(verdict.accuracy), *(percent(value) for value in kept))

    rows = [row("pretrained", judge.before)]
    if merged.candidates:
        rows += [row(f"α = {each.alpha:g}", each.verdict) for each in merged.candidates]
    else:
        rows += [row(folder, judge(end)) for folder, end in kin.ends.items()]
        rows.append(row(merged.name, merged.verdict))
    show_table(merged.name, ("weights", "held-out", *(f"retained: {name}" for name in retained)), rows)


def _measure(flags: Flags, kin: Family, judge: Judge) -> int:
    """Predictions of two models at inference: there are no weights to keep."""
    pair = Pair(kin, judge, judge.held_out)
    rows = [("pretrained", pair.known.accuracy), ("finetuned", pair.learned.accuracy)]
    if flags.dawin is not None:
        share = pair.share(kind=flags.dawin)
        rows += [("outputs mixed by λ", pair.ensemble(share).accuracy), ("DaWin", pair.dawin(share).accuracy)]
    else:
        rows.append((f"ensemble {flags.ensemble:g}", pair.ensemble(flags.ensemble or 0.0).accuracy))
    title = f"{kin.runs[0].folder} on {judge.held_out.name}, {len(judge.held_out)} images"
    show_table(title, ("model", "accuracy"), [(name, percent(value)) for name, value in rows])
    return 0
