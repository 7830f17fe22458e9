"""What `tracer train --dry-run` shows: whether it fits in memory, how much work it is, and which settings differ.

Nothing is downloaded; that weights are not on this machine, and whether they can be fetched, is said.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tracer.api.inputs import model_name
from tracer.api.run import divisible
from tracer.api.terminal import counting, errors, say, show_table
from tracer.methods.base import options
from tracer.parallel import World
from tracer.parallel.device import device as find_device
from tracer.parallel.device import free_memory
from tracer.runs.experiment import Experiment
from tracer.runs.plan import Plan, plan
from tracer.storage.room import free, size_text
from tracer.training.estimate import Estimate, estimate, training_seconds
from tracer.training.footprint import footprint
from tracer.training.pace import time_text

CHUNKS = (64, 32, 16, 8, 4)
GIB = 2**30


def dry_run(experiment: Experiment, device: str, out: Path | None = None, everything: bool = False) -> int:
    """Print what would run, without training; with `everything`, all settings and all parts of the memory."""
    target = find_device(device)
    with TemporaryDirectory() as temporary:  # a run as the model is written there
        folder = replace(experiment, model=model_name(experiment.model, Path(temporary)))
        with counting("reading the images") as progress:
            settled = divisible(plan(folder, progress=progress), World("cpu"))
        with errors.status("looking for the weights"):
            chosen = settled.experiment
            weights = chosen.locate().outlook()
        with errors.status("estimating the memory"):
            need = estimate(settled)
            verdict, fitting = _verdict(settled, need, target.type, free_memory(target))
        with errors.status("timing a step"):
            duration = "" if fitting is None else _duration(fitting, device)
            if fitting is not None and fitting.experiment.chunk != settled.experiment.chunk:
                duration += f" with --chunk {fitting.experiment.chunk}"
        disk = footprint(settled, chosen.pretrained_model(random=True)).total
    settled = replace(settled, experiment=replace(settled.experiment, model=experiment.model))
    say(verdict)
    if weights:
        say(f"warning: {weights}", to=errors)
    say(f"{settled.steps:,} steps of {settled.batch} images{duration}; {settled.division}")
    room = free(out or Path("runs"))
    if room is not None and disk > room:
        place = out or Path("runs")
        say(f"warning: it writes {size_text(disk)}, and {size_text(room)} are free at {place}", to=errors)
    for warning in settled.warnings:
        say(f"warning: {warning}", to=errors)
    chosen = (all_settings if everything else different_settings)(settled.experiment)
    rows = [(name, _text(value)) for name, value in {"method": None, **chosen}.items()]
    memory = need.lines()
    rows += memory if everything else [memory[1], memory[-1]]
    rows.append(("disk: weights, two checkpoints", size_text(disk)))
    some = "Settings that differ from the defaults (--dry-run-all shows all)"
    show_table("All settings" if everything else some, ("setting", "value"), rows)
    return 0


def _verdict(settled: Plan, need: Estimate, kind: str, free: int | None) -> tuple[str, Plan | None]:
    """One sentence: it fits, or what would make it fit. With the plan that fits, None if there is none."""

    def bytes_on_device(each: Estimate) -> int:
        return each.total if kind == "cpu" else each.total - each.process

    if need.step is None or free is None:
        why = "this model cannot be simulated" if need.step is None else f"{kind} does not say what is free"
        return f"fits perhaps: at least {bytes_on_device(need) / GIB:.1f} GiB are needed, and {why}", settled
    room = free + (need.process if kind == "cpu" else 0)  # the libraries are in memory already
    needed = f"{bytes_on_device(need) / GIB:.1f} GiB"
    if bytes_on_device(need) <= room:
        return f"fits: needs {needed} of {room / GIB:.1f} GiB", settled
    start = f"does not fit in {room / GIB:.1f} GiB (needs {needed})"
    for chunk in CHUNKS:
        if chunk < min(settled.batch, settled.experiment.chunk or settled.batch):
            chunked = replace(settled, experiment=replace(settled.experiment, chunk=chunk))
            smaller = bytes_on_device(estimate(chunked))
            if smaller <= room:
                return f"{start}: use --chunk {chunk} ({smaller / GIB:.1f} GiB)", chunked
    return f"{start}: use a smaller --model; --chunk and --checkpointing do not suffice", None


def _duration(settled: Plan, device: str) -> str:
    """How long the steps take here; reading data, evaluating and saving come on top."""
    seconds = training_seconds(settled, device, settled.experiment.precision)
    return f", about {time_text(seconds)} on this machine" if seconds else ""


def all_settings(experiment: Experiment) -> dict[str, Any]:
    """All settings and options by name, with the defaults of the method's options filled in."""
    settings = experiment.to_json()
    chosen = settings.pop("options")
    defaults = {option.name: option.default for option in options(experiment.method)}
    return settings | defaults | chosen


def different_settings(experiment: Experiment, other: Experiment | None = None) -> dict[str, Any]:
    """The settings and options that are not those of another experiment; by default the method, and no defaults."""
    usual = all_settings(Experiment(data="", method=experiment.method))
    usual |= {"method": None} if other is None else all_settings(other)
    return {name: value for name, value in all_settings(experiment).items() if value != usual[name]}


def _text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else "" if value is None else str(value)
