"""Run one task and seed: the search, a grid of methods and rates, and the scores of every mixture on test data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from studies.fit.starts import start
from studies.fit.tasks import TASKS, Data
from tracer.api.inputs import data_name
from tracer.api.run import Machine
from tracer.fitting.candidates import LABELLED, Candidate, direct
from tracer.fitting.choice import choose
from tracer.fitting.fit import Request, prepare
from tracer.fitting.search import Search, Tell
from tracer.fitting.trial import ALPHAS, Trial
from tracer.merging.evaluator import Evaluator, Scores
from tracer.merging.run_group import run_group
from tracer.merging.wise import interpolate
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.storage.atomic import write_json

BUDGET = "10-runs"
METHODS = (direct(labelled=True), *LABELLED)
DEFAULTS = (
    *map(Candidate, ("ft", "lipsum", "static_sd", "ema_sd", "tracer", "l2sp")),
    Candidate("lpft", {"unit": True}),  # without, it cannot be mixed with the zero-shot classifier
)
LARGE_GRID = tuple(  # a hundred runs
    replace(method, lr=rate)
    for method in (*METHODS, Candidate("ema_sd"))
    for rate in (1e-5, 3e-5, 6e-5, 1e-4, 2e-4, 3e-4, 6e-4, 1e-3, 2e-3, 3e-3)
)
KEEPS = (0.9, 0.95, 0.97)
FILE = "test.json"  # in the folder of a trial


def measured(name: str, seed: int, home: Path, cache: Path, large: bool, tell: Tell) -> dict[str, Any]:
    """All mixtures of a task and seed on held-out and on test data, and which of them `fit` chose.

    With `large`, the grid has a hundred runs.
    """
    task = TASKS[name]
    data = task.data(seed, cache)
    base = Experiment(
        method="zeroshot",
        data=data_name(data.train),
        retain=(data_name(data.retain),),
        model=str(start(task.start, home / "starts", cache)),
        **task.settings,
        augment="none",
        precision="fp32",
        seed=seed,
    )
    folder = "".join(letter if letter.isalnum() else "-" for letter in f"{name}-{seed}")
    request = Request(base, BUDGET, None, home / "searches" / folder)
    search = prepare(request, Machine(device="cpu", workers=0), tell)
    search.run()
    searched = set(search.paths)
    choices = {str(keep): choose(search.before, search.points, keep).point for keep in (None, *KEEPS)}
    small = (replace(method, lr=rate) for method in DEFAULTS for rate in task.rates)
    candidates = (*small, *(LARGE_GRID if large else ()))
    grid = [search.trial(candidate, task.settings["steps"]) for candidate in candidates]
    search.complete(grid)
    gridded = {trial.name for trial in grid}
    return {
        "task": name,
        "seed": seed,
        "rates": task.rates,
        "grid": len(gridded),
        "held_out": len(search.before.hits),
        "n": [len(half) for half in halves(range(len(data.test)))],
        "m": [len(half) for half in halves(range(len(data.test_retain)))],
        "before": _tested(next(search.all_trials()), data)["0"],
        "points": [
            {**row, "searched": trial.name in searched, "gridded": trial.name in gridded}
            for trial in search.all_trials()
            for row in _rows(search, trial, data)
        ],
        "chosen": {keep: [point.trial, point.alpha] for keep, point in choices.items()},
    }


def _rows(search: Search, trial: Trial, data: Data) -> Iterator[dict[str, Any]]:
    tested = _tested(trial, data)
    for point in search.paths[trial.name]:
        yield {
            "trial": trial.name,
            "method": spec(trial.candidate),
            "lr": trial.candidate.lr,
            "steps": trial.steps,
            "alpha": point.alpha,
            "held_out": round(point.accuracy, 4),
            "retention": round(point.retention(search.before), 4),
            **tested[f"{point.alpha:g}"],
        }


def _tested(trial: Trial, data: Data) -> dict[str, Any]:
    """Right answers of the mixtures of a trial on both halves of the test data, by α; kept in its folder."""
    file = trial.folder / FILE
    if not file.exists():
        group = run_group([trial.run])
        evaluator = Evaluator(group, World("cpu", "fp32"), data.test, (data.test_retain,), compare=False)
        (end,) = group.ends.values()
        alphas = ALPHAS if trial.candidate.method != "zeroshot" else ()
        table = {f"{alpha:g}": _counts(evaluator(interpolate(group.start, end, alpha))) for alpha in alphas}
        write_json(file, {"0": _counts(evaluator.before), **table})
    return json.loads(file.read_text(encoding="utf-8"))


def spec(candidate: Candidate) -> str:
    """Method, adapter and options of a candidate, as the result files name them."""
    options = ", ".join(f"{name} {value}" for name, value in candidate.options.items())
    method = f"{candidate.method} with {candidate.adapter}" if candidate.adapter else candidate.method
    return f"{method} ({options})" if options else method


def _counts(scores: Scores) -> dict[str, list[int]]:
    (kept,) = scores.retained_hits.values()
    return {
        "test": [sum(half) for half in halves(scores.hits)],
        "kept": [sum(half) for half in halves(kept)],
    }


def halves(values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Every other value, and the rest."""
    return values[::2], values[1::2]
