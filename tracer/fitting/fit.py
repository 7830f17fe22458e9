"""`tracer.fit`: the best model for some data that still knows what it knew, found within a budget."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from inspect import signature
from pathlib import Path
from typing import Any

from tracer.api.inputs import data_names, data_settings, model_name, model_run
from tracer.api.run import Machine, Observer, run
from tracer.api.terminal import say
from tracer.core.command_line import command_line, flag
from tracer.core.errors import UserError, unknown
from tracer.data.classes import Spec
from tracer.data.formats.memory import PREFIX
from tracer.fitting.budget import Budget, Schedule, Speed, budget_text, doubled, planned
from tracer.fitting.candidates import direct, most, without_rate
from tracer.fitting.parts import check_known, parts_of, seen_warning, with_test_share
from tracer.fitting.result import Fitted, finish
from tracer.fitting.search import Search, Tell
from tracer.fitting.trial import FILE as SCORES
from tracer.fitting.trial import read_state, write_state
from tracer.parallel import World, require_one_process
from tracer.runs.experiment import Experiment, Settings, TrialSettings
from tracer.runs.identity import identity
from tracer.runs.plan import plan
from tracer.runs.run import Run
from tracer.storage.lock import lock
from tracer.storage.room import require_room
from tracer.training.footprint import footprint, model_bytes
from tracer.training.pace import time_text
from tracer.training.setup import first_stage

DEFAULT_BUDGET = "30m"
PLAN = "plan.json"
NOT_SETTINGS = ("data", "lr", "held_out", "held_out_share")  # chosen here


@dataclass(frozen=True)
class Request:
    """What is asked for: the experiment that all trials vary, the budget, the share to keep, the folder.

    `run` is the run whose weights are the model, if there is one.
    """

    base: Experiment
    budget: str = DEFAULT_BUDGET
    keep: float | None = None
    out: Path | None = None
    run: Run | None = None

    def __post_init__(self) -> None:
        Budget.parse(self.budget)
        if self.base.pretrained == "none":
            raise UserError("--pretrained none: a model with random weights knows nothing that could be kept")
        if self.keep is not None and not 0 < self.keep <= 1:
            raise UserError(
                f"--keep {self.keep} is a share of what the model could do: between 0 and 1, such as 0.97"
            )

    def longer(self, machine: Machine) -> str:
        """The command of this request with twice the budget; what to change in the call, where no command says it."""
        budget, changed = doubled(self.budget), self.base.changed
        if self.run is not None:
            changed["model"] = str(self.run.folder)
        own = {each.name for each in fields(TrialSettings)}
        if not own.issuperset(changed) or any(
            name.startswith(PREFIX) for name in (self.base.data, *self.base.retain)
        ):
            return f'the same call with budget="{budget}"'
        more = {"keep": self.keep, "out": self.out, "device": machine.device, "workers": machine.workers}
        changed |= {name: value for name, value in more.items() if value not in (None, "auto")}
        words = [word for name, value in changed.items() for word in flag(name, value)]
        return command_line("fit", *words, "--budget", budget)


def fit(
    data: Any,
    *,
    model: Any = "ViT-B-16",
    budget: str | int = DEFAULT_BUDGET,
    keep: float | None = None,
    retain: Any = (),
    classes: Spec | None = None,
    out: str | Path | None = None,
    device: str = "auto",
    workers: int | None = None,
    tell: Tell = say,
    **settings: Any,
) -> Fitted:
    """Find the method, learning rate, strength and mixture that learn the task and keep what the model knew.

    Called again with the same arguments it goes on where it was stopped, or returns the finished result; several
    processes that are called with the same `out` share the work.

    Args:
        data: as in `finetune`. A split test, or a share, is left untouched until the choice is made.
        model: as in `finetune`.
        budget: a time such as 30m or 2h, or a number of full finetunings such as 20-runs or 20.
        keep: share of what the model could do that it must keep, for example 0.97; without it, the mixture that keeps
            most of those within noise of the most accurate is chosen.
        retain: data that say what the model could do; by default the naming of embedded emoji.
        classes: names of the classes, where labels are numbers.
        out: the folder of the trials and of the result; by default runs/fit-ID.
        device: auto, cpu, cuda or mps.
        workers: processes that decode images.
        tell: receives lines about plan and progress; by default they are printed.
        settings: settings of `tracer train` that all trials share (templates, augment, batch, epochs, seed, …).
    """
    require_one_process("tracer.fit")
    folder = None if out is None else Path(out)
    known = {field.name for field in fields(Settings)}.difference(NOT_SETTINGS)
    for name in settings:
        if name not in known:
            own = set(signature(fit).parameters) - {"settings"}
            raise unknown("argument of fit", name, known | own)
    settings |= {"retain": data_names(retain), **data_settings(data, classes)}
    request = requested(model, budget_text(budget), keep, folder, settings)
    search = prepare(request, Machine(device=device, workers=workers), tell)
    _require_room(search)
    search.run()
    return finish(search)


def requested(
    model: Any, budget: str, keep: float | None, out: Path | None, settings: Mapping[str, Any]
) -> Request:
    """The request with this model and these settings; the weights of a run or a module are written to a folder."""
    run = model_run(model)
    base = Experiment(method="zeroshot", **settings)
    checked = Request(base, budget, keep, out, run)  # before anything is written
    return replace(checked, base=replace(base, model=model_name(model, out or Path("runs"))))


def prepare(request: Request, machine: Machine, tell: Tell) -> Search:
    """Look at the data, score the pretrained model, time a step and plan the trials; says what it found."""
    started, budget = time.monotonic(), Budget.parse(request.budget)
    base = with_test_share(request.base)
    settled = plan(base)
    parts = parts_of(settled)
    folder = request.out or Path("runs") / f"fit-{identity(settled)}"
    states = [read_state(file) for file in folder.glob(f"trials/*/{SCORES}")]
    earlier = sum(state.get("training", 0.0) + state.get("other", 0.0) for state in states)
    search = Search(base, parts, folder, machine, tell, request.keep, again=request.longer(machine))
    if request.run is not None and (warning := seen_warning(request.run, settled, parts.test)):
        search.warning = warning
        tell(f"Warning: {warning}.")
    full = settled.experiment.steps or 1
    zero_shot = search.trial(without_rate(False)[0], full)
    begun = time.monotonic()
    observer = Observer(warn=tell, again="the same tracer fit")
    with lock(folder / ".locks" / zero_shot.name, wait=True):
        finished = run(zero_shot.experiment, zero_shot.folder, machine, observer)
    first = time.monotonic() - begun
    check_known(finished.result["before"]["retain"])
    if not finished.result["changes"]["retain"]:  # it cannot name emoji, so that this shows nothing
        search.parts = parts = replace(parts, retain=(), test_retain=())
    split = "" if settled.test is not None else f", {len(parts.test)} in the split test"
    tell(f"{settled.division}{split}")
    kept = ", ".join(f"{len(each)} images of {each.name}" for each in parts.retain)
    names = "how often held-out images keep their ImageNet name"
    tell(f"What is kept: {f'measured on {kept}, and as many for the test' if kept else names}.")
    speed, labelled = Speed(_step(search, full), first), parts.test.labelled
    if budget.seconds is not None:
        # Refuse a budget that is too short now, before the probe is scored: what is left can only add to this time.
        _schedule(request.budget, folder, speed, full, labelled, time.monotonic() - started)
    search.start(full)
    overheads = [trial.spent.other for trial in search.all_trials()]
    speed = Speed(speed.step, max(first + overheads[0], *overheads))
    if budget.seconds is not None:
        search.speed = speed
    with lock(folder / ".locks" / PLAN, wait=True):  # of two processes, the second follows the first's plan
        gone = time.monotonic() - started
        before = spent_before(read_state(folder / PLAN), request.budget, full, earlier)
        search.schedule = _schedule(request.budget, folder, speed, full, labelled, gone)
        asked = {"budget": request.budget, "full": full, "earlier": before}
        write_state(folder / PLAN, {**asked, **search.schedule._asdict()})
    rungs = [
        f"{trials} {'trial' if trials == 1 else 'trials'} of {steps} steps"
        for steps, trials in zip(*search.schedule, strict=True)
    ]
    tell(f"Plan, within {request.budget}: {', then '.join(rungs)}.")
    total = time_text(search.schedule.total(speed.trial))
    tell(f"On this machine {speed}, all trials about {total}.")
    if budget.seconds is not None:
        tell("In time that is left, more of them become longer.")
        search.deadline = started + max(0.0, budget.usable(speed) - (earlier - before))
    return search


def spent_before(known: Mapping[str, Any], budget: str, full: int, earlier: float) -> float:
    """Of the `earlier` seconds of all trials, those that this budget does not pay: of trials before its plan was made.

    Another budget than that of the known plan is another search, which begins now.
    """
    same = (known.get("budget"), known.get("full")) == (budget, full)
    return known.get("earlier", 0.0) if same else earlier


def _require_room(search: Search) -> None:
    """Raise DiskFull if there is none for what is still to be written: a result of each trial, and one run."""
    longest = search.trial(direct(search.parts.test.labelled), search.schedule.steps[-1])
    settled = plan(longest.experiment, check_images=False)
    model = settled.experiment.pretrained_model(random=True)
    whole, ended = model_bytes(model), len(list(search.folder.glob(f"trials/*/{SCORES}")))
    trials = sum(search.schedule.trials) - max(0, ended - len(without_rate(search.parts.test.labelled)))
    if trials > 0:
        less = "make room, give --out on another disk, or a smaller --budget"
        needed = trials * whole + footprint(settled, model).total
        require_room(search.folder, needed, f"a search of {trials} more trials", less)


def _schedule(
    budget: str, folder: Path, speed: Speed, full: int, labelled: bool, gone: float = 0.0
) -> Schedule:
    """The trials that the budget allows after `gone` seconds: as planned before, if the search goes on."""
    known = read_state(folder / PLAN)
    if (known.get("budget"), known.get("full")) == (budget, full):
        return Schedule(tuple(known["steps"]), tuple(known["trials"]))
    return planned(Budget.parse(budget), speed, full, most(labelled), gone)


def _step(search: Search, full: int) -> float:
    """Seconds of a step of direct finetuning: the least of three."""
    experiment = direct(search.parts.test.labelled).experiment(search.base, full)
    world = World(search.machine.device, experiment.precision)
    learner = first_stage(plan(experiment, check_images=False), world)
    times = []
    for number in range(1, 4):
        start = time.monotonic()
        learner.step(number, learner.data[number - 1])
        times.append(time.monotonic() - start)
    return min(times)
