"""Run one task and seed: the search, a grid of methods and rates, and the scores of every mixture on test data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from studies.fit.starts import start
from studies.fit.tasks import TASKS, Data
from tracer.api.inputs import data_name
from tracer.api.run import Machine
from tracer.core.weights import Weights
from tracer.fitting.candidates import LABELLED, direct
from tracer.fitting.choice import choose
from tracer.fitting.fit import Request, prepare
from tracer.fitting.search import Search, Tell
from tracer.fitting.trial import ALPHAS, Trial
from tracer.merging.evaluator import Evaluator
from tracer.merging.run_group import run_group
from tracer.merging.wise import interpolate
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.storage.atomic import write_json

STEPS, BATCH, BUDGET = 60, 64, "10-runs"
GRID_RATES = (3e-5, 1e-4, 3e-4, 1e-3)
METHODS = (direct(labelled=True), *LABELLED)
KEEPS = (0.9, 0.95, 0.97)
FILE = "test.json"  # in the folder of a trial


def measured(name: str, seed: int, home: Path, tell: Tell) -> dict[str, Any]:
    """All mixtures of a task and seed on held-out and on test data, and which of them `fit` chose."""
    task = TASKS[name]
    data = task.data(seed)
    base = Experiment(
        method="zeroshot",
        data=data_name(data.train),
        retain=(data_name(data.retain),),
        model=str(start(task.start, home / "starts")),
        steps=STEPS,
        batch=BATCH,
        augment="none" if task.start == "digits" else "crop",
        precision="fp32",
        seed=seed,
    )
    machine = Machine(device="cpu", workers=0)
    out = home / "searches" / f"{name.replace(': ', '-').replace(', ', '-').replace(' ', '-')}-{seed}"
    search = prepare(Request(base, BUDGET, None, out), machine, tell)
    search.run()
    searched = list(search.all_trials())
    choices = {str(keep): choose(search.before, search.points, keep).point for keep in (None, *KEEPS)}
    grid = [search.trial(replace(method, lr=rate), STEPS) for method in METHODS for rate in GRID_RATES]
    search.complete(grid)
    trials = dict.fromkeys([*searched, *(trial for trial in grid if not trial.failed)])
    return {
        "task": name,
        "seed": seed,
        "held_out": len(search.before.hits),
        "before": _before(search, data),
        "points": [row for trial in trials for row in _rows(search, trial, trial in searched, data)],
        "chosen": {keep: [point.trial, point.alpha] for keep, point in choices.items()},
    }


def _before(search: Search, data: Data) -> dict[str, Any]:
    zero_shot = next(trial for trial in search.all_trials() if trial.candidate.method == "zeroshot")
    return {"held_out": search.before.accuracy, **_tested(zero_shot, data)["0"]}


def _rows(search: Search, trial: Trial, searched: bool, data: Data) -> Iterator[dict[str, Any]]:
    tested = _tested(trial, data)
    for point in search.paths[trial.name]:
        yield {
            "trial": trial.name,
            "method": trial.candidate.label,
            "lr": trial.candidate.lr,
            "steps": trial.steps,
            "searched": searched,
            "alpha": point.alpha,
            "held_out": point.accuracy,
            "retention": point.retention(search.before),
            **tested[f"{point.alpha:g}"],
        }


def _tested(trial: Trial, data: Data) -> dict[str, Any]:
    """Right answers of the mixtures of a trial on test data, by α; kept in its folder."""
    file = trial.folder / FILE
    if not file.exists():
        group = run_group([trial.run])
        evaluator = Evaluator(group, World("cpu", "fp32"), data.test, (data.test_retain,), compare=False)
        (end,) = group.ends.values()

        def scores(weights: Weights) -> dict[str, Any]:
            each = evaluator(weights)
            (kept,) = each.retained_hits.values()
            return {"test": sum(each.hits), "n": len(each.hits), "kept": sum(kept), "m": len(kept)}

        alphas = ALPHAS if trial.candidate.method != "zeroshot" else ()
        table = {f"{alpha:g}": scores(interpolate(group.start, end, alpha)) for alpha in alphas}
        write_json(file, {"0": scores(group.start), **table})
    return json.loads(file.read_text(encoding="utf-8"))
