"""`tracer.merge`: interpolate, average or project the weights of finished runs."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tracer.api.inputs import data_name, data_names
from tracer.core.errors import UserError, at_least, unknown
from tracer.core.model_stock import By
from tracer.core.projection import Norm
from tracer.data.scan import scan
from tracer.data.sources import load as load_data
from tracer.data.split import Division, align_labels
from tracer.evaluation.probe import MOST, NAME, emoji_probe
from tracer.merging import merges
from tracer.merging.choose import check_keep
from tracer.merging.dawin import Kind
from tracer.merging.evaluator import Evaluator
from tracer.merging.merges import Merged
from tracer.merging.run_group import run_group, same_held_out
from tracer.merging.wise import alphas
from tracer.parallel import World
from tracer.runs.plan import retained_data, trained_retained
from tracer.runs.run import Run
from tracer.storage.atomic import write_json
from tracer.storage.room import require_room, size

LINES = ("wise", "paint", "fisher")  # interpolations, from whose sweep one α is chosen
RUN_WEIGHTS = ("result", "student", "teacher", "pretrained")
WAYS = (*LINES, "soup", "stock", "tpgm", "dawin", "ensemble")


@dataclass(frozen=True, kw_only=True)
class Merge:
    """One way to merge, and the data to choose by."""

    wise: str | None = None
    """Interpolate with the pretrained model: an α, or a sweep start:stop:step."""
    paint: str | None = None
    """Interpolate the image tower alone; of a sweep, the best mean of task and retained accuracy."""
    fisher: str | None = None
    """Interpolate, each weight by the Fisher information of either model."""
    soup: str | None = None
    """The mean of several runs: uniform, or greedy on held-out data."""
    stock: By | None = None
    """Model Stock of several runs: one ratio a tensor, or one a row."""
    tpgm: Norm | None = None
    """Project weights to radii learned on held-out data: distances by rows, or of whole tensors."""
    dawin: Kind | None = None
    """Measure DaWin, which interpolates for each image: by samples, or clustered."""
    ensemble: float | None = None
    """Measure the ensemble of outputs, with this weight on the finetuned model."""

    keep: float | None = None
    """Take the strongest adaptation that retains this share of what the pretrained model can do, as measured."""
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

    @property
    def way(self) -> str:
        """The one way that is chosen; raises UserError for none, several, or options that do not fit it."""
        at_least(1, steps=self.steps)
        ways = [way for way in WAYS if getattr(self, way) is not None]
        if len(ways) != 1:
            problem = f"{' and '.join(ways)} are given" if ways else "none is given"
            flags = ", ".join(f"--{way}" for way in WAYS)
            raise UserError(
                f"{problem}: choose one way to merge, for example --wise 0.5 (wise=0.5 in Python), of {flags}"
            )
        (way,) = ways
        if self.keep is not None:
            check_keep(self.keep)
            if way not in LINES:
                raise UserError(f"--keep chooses from a sweep of wise, paint or fisher; {way} has none")
        if way == "fisher" and self.extrapolate:
            raise UserError(
                "fisher is a weighted mean, whose weights would be negative: use wise to extrapolate"
            )
        if way == "soup" and self.soup not in ("uniform", "greedy"):
            raise UserError(f"a soup is uniform or greedy, not {self.soup!r}")
        if way in LINES:
            alphas(getattr(self, way), extrapolate=self.extrapolate)
        return way


def merge(
    *runs: Run | str | Path,
    wise: float | str | None = None,
    held_out: Any = None,
    retain: Any = (),
    name: str | None = None,
    device: str = "auto",
    **options: Any,
) -> Run:
    """Merge finished runs; the weights are written into the first run, which is returned standing for them.

    Args:
        runs: finished runs or their folders: one for an interpolation with the pretrained model, several for a soup.
        wise: WiSE-FT: an α, or a sweep "0:1:0.1" from which one α is chosen on held-out data.
        held_out: data to choose by, instead of what the run held out.
        retain: data whose accuracy should survive, instead of the run's.
        name: name of the merged weights.
        device: auto, cpu, cuda or mps.
        options: other options of `tracer merge`: paint, fisher, soup, stock, tpgm, keep, extrapolate, steps, weights.
    """
    check_name(name)
    options["wise"] = wise
    choices = {field.name for field in fields(Merge)}
    for option, value in options.items():
        if option not in choices:
            raise unknown("option of merge", option, choices)
        if option in LINES and value is not None:
            options[option] = str(value)  # an α may be a number here
    request = Merge(
        held_out=None if held_out is None else data_name(held_out), retain=data_names(retain), **options
    )
    if request.way in ("dawin", "ensemble"):
        raise UserError(f"{request.way} has no weights to keep: measure it with `tracer merge`")
    opened = [each if isinstance(each, Run) else Run.open(Path(each)) for each in runs]
    evaluator = prepare(request, opened, device)
    return keep(evaluator, merged(request, evaluator), name)


def prepare(
    request: Merge, runs: list[Run], device: str, warn: Callable[[str], object] = warnings.warn
) -> Evaluator:
    """Check that the runs can be merged in this way, load them, and score the pretrained model.

    `warn` receives what is probably not meant, such as data to choose by that were trained on.
    """
    if not runs:
        raise UserError("give the runs to merge")
    runs[0].require_own_files()  # into which the weights are written
    for run in runs:
        run.require_named_sources()
    way = request.way  # raises before any work if the options do not fit
    if len(runs) > 1 and way not in ("soup", "stock"):
        how = "an ensemble" if way in ("dawin", "ensemble") else way
        raise UserError(f"{how} merges one run with its pretrained model, and {len(runs)} runs are given")
    group, world = run_group(runs, request.weights), World(device, "fp32")
    if request.held_out is None and request.soup == "greedy" and not same_held_out(runs):
        names = " and ".join(str(run.folder) for run in runs)
        raise UserError(
            f"a greedy soup needs images that no run has trained on, and {names} held out different ones: "
            "give --held-out"
        )
    if way not in ("dawin", "ensemble"):
        needed = size(runs[0].weights_file("result"))
        require_room(runs[0].folder, needed, "the merged model", "make room, which is needed beside the run")
    retained = tuple(retained_data(spec) for spec in request.retain) or group.plan.retain
    if not retained and NAME in (runs[0].result or {}).get("changes", {}).get("retain", {}):
        retained = (emoji_probe(100 * MOST),)
    held_out, train = None, group.plan.train
    if request.held_out is not None:
        measured = request.way in ("dawin", "ensemble")  # the others choose by these data
        split = "test" if measured else "val"
        examples = scan(load_data(request.held_out, split=split, white_level=train.white_level))
        held_out = align_labels(examples, train.classes)
        for warning in (*held_out.warnings, *Division(train, held_out, None, "").overlap):
            warn(warning)
    for warning in trained_retained(train, retained) if request.retain else ():
        warn(warning)
    return Evaluator(group, world, held_out, retained, compare=not retained)


def merged(request: Merge, evaluator: Evaluator) -> Merged:
    """The merged weights, with the scores of every candidate."""
    if request.soup is not None:
        return merges.soup(evaluator, request.soup)
    if request.stock is not None:
        return merges.model_stock(evaluator, request.stock)
    if request.tpgm is not None:
        return merges.tpgm(evaluator, request.tpgm, request.steps)
    way = request.way
    candidates = alphas(getattr(request, way), extrapolate=request.extrapolate)
    return merges.interpolation(evaluator, candidates, way, request.keep)


def check_name(name: str | None) -> None:
    """Raise UserError for a name of merged weights that is taken by a run's own, or is none of a file."""
    if name in RUN_WEIGHTS:
        raise UserError(f"--name {name} would replace weights of the run itself: give another name")
    if name is not None and not re.fullmatch(r"[\w=+,@-][\w=+.,@ -]{0,99}", name):
        raise UserError(f"--name {name!r:.60}: give up to 100 letters, digits, spaces and any of =+.,@-_")


def keep(
    evaluator: Evaluator,
    merged: Merged,
    name: str | None = None,
    warn: Callable[[str], object] = warnings.warn,
) -> Run:
    """Write merged weights, and how they came about, into the first run; return it standing for them.

    By default they are called by the way to merge, and by the weights if these are no result. `warn` is told of other
    weights that are replaced.
    """
    runs, weights = evaluator.group.runs, evaluator.group.weights
    name = name or (merged.name if weights == "result" else f"{merged.name}-{weights}")
    run = runs[0]
    if run.keep(name, merged.weights):
        warn(f"other weights were called {name}: they are replaced, and what was measured of them is removed")
    candidates = [{"alpha": each.alpha, **each.scores.to_json()} for each in merged.candidates]
    story = {
        "way": merged.name,
        "by": run.by(name),
        "runs": [str(each.folder) for each in runs],
        "notes": merged.notes,
    }
    scores = {
        "before": evaluator.before.to_json(),
        "after": merged.scores.to_json(),
        "candidates": candidates,
    }
    write_json(run.folder / "merges" / f"{name}.json", {**story, **scores, **merged.details})
    return Run(run.folder, name)
