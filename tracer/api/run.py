"""The life of a run: plan, folder, lock, training, result. Commands, sweeps, studies and `finetune` all use it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tracer.api.inputs import model_name
from tracer.core.command_line import command_line
from tracer.core.errors import AlreadyReported, NonFinite, UserError, at_least, os_error_message
from tracer.data.loader import WorkerLost, decoders, worker_errors
from tracer.data.scan import Progress
from tracer.models.student import Student
from tracer.parallel import Lost, World, launched
from tracer.runs.experiment import Experiment
from tracer.runs.identity import identity
from tracer.runs.plan import Plan, plan
from tracer.runs.record import NullRecorder
from tracer.runs.run import Run
from tracer.runs.sinks import Name, check_installed, forward_to_sinks
from tracer.storage.cache import cache_folder
from tracer.storage.lock import lock
from tracer.storage.provenance import versions
from tracer.storage.room import FULL, DiskFull
from tracer.training.checkpoint import newest
from tracer.training.footprint import require_run_room
from tracer.training.loop import Report, Training
from tracer.training.pace import Clock
from tracer.training.setup import check_trainable, notices, text_notices


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where and how a run is carried out; none of it changes the result."""

    device: str = "auto"
    """auto, cpu, cuda or mps."""
    workers: int | None = None
    """Processes that decode images; by default none for data in memory, else up to 8."""
    save_every: int | None = None
    """Steps between checkpoints; by default about every two minutes, and less often if writing one takes long."""
    log: tuple[Name, ...] = ()
    """Show the curves elsewhere too: tensorboard, wandb, mlflow. The run's own log.jsonl is written in any case."""
    shard: bool = False
    """Under torchrun: shard weights, optimiser and teacher over the processes (FSDP2) instead of copying them; a
    resumed run may have another number of processes."""

    def __post_init__(self) -> None:
        at_least(0, workers=self.workers)
        at_least(1, save_every=self.save_every)
        check_installed(self.log)


@dataclass(frozen=True, kw_only=True)
class Observer:
    """Functions that are told how a run goes; all are optional."""

    scan: Callable[[World], AbstractContextManager[Progress]] | None = None  # while all images are read once
    note: Callable[[str], object] | None = None  # what is trained on and held out
    report: Callable[[Report], object] | None = None
    warn: Callable[[str], object] = warnings.warn
    lost: Callable[[Lost], None] | None = None  # another process has gone; called from a thread
    again: str | None = None  # what goes on if the run ends early; by default `tracer resume RUN`


def run(
    experiment: Experiment,
    out: Path | None = None,
    machine: Machine | None = None,
    observer: Observer | None = None,
    *,
    evaluate_every: int | None = None,
    fresh: bool = False,
) -> Run:
    """Carry out an experiment and return its finished run.

    The run is created in `out`, by default runs/ID with an id made of experiment and data. If it is there already it
    goes on from its newest checkpoint, or is returned if it is finished; with `fresh` that is an error. A folder
    with another experiment, or whose data or weights have changed, is refused.
    """
    machine, observer, clock = machine or Machine(), observer or Observer(), Clock()
    with launched(machine.device, experiment.precision, shard=machine.shard, lost=observer.lost) as world:
        with clock.measure("start"):
            experiment = _with_model_at_hand(experiment, out, world)
            settled = world.all_or_none(lambda: _plan(experiment, observer, world))
        folder, model = out or Path("runs") / identity(settled), None
        existing = world.all_or_none(lambda: Run.exists(folder))
        if not existing:  # first, so that a model that cannot be loaded leaves no folder behind
            with clock.measure("start"):
                model = world.all_or_none(lambda: _checked_model(settled))
            if world.first:
                for notice in (*notices(settled.method, model), *text_notices(settled, model)):
                    (observer.note or observer.warn)(notice)
            world.on_first_process(lambda: require_run_room(settled, model, folder))
        world.on_first_process(
            lambda: (
                Run.open(folder).require(settled)
                if Run.exists(folder) and not fresh
                else Run.create(settled, folder, machine=world.describe())
            )
        )
        current = world.all_or_none(lambda: Run.open(folder))
        if not current.finished:
            if model is None:
                with clock.measure("start"):
                    model = world.all_or_none(settled.experiment.pretrained_model)
                world.on_first_process(lambda: require_run_room(settled, model, folder))
            if existing and world.first and (difference := _other_machine(current, world)):
                (observer.note or observer.warn)(difference)
            workers = machine.workers
            if workers is None:
                workers = decoders(settled.train.images, world.local_size)
            options = {"save_every": machine.save_every, "evaluate_every": evaluate_every, "workers": workers}
            with _recording(current, world, machine, observer):
                training = Training(settled, current, world, clock=clock, model=model, **options)
                training.finish(observer.report if world.first else None)
    return current


def _with_model_at_hand(experiment: Experiment, out: Path | None, world: World) -> Experiment:
    """The experiment, once its model is on this machine; a run as the model is replaced by a folder of its weights."""
    beside = Path("runs") if out is None else out.parent

    def fetch() -> None:
        model = model_name(experiment.model, beside)
        if out is not None and Run.exists(out):  # it may be finished, and need no model
            return
        named = replace(experiment, model=model)
        if _by_network(named):
            # First what needs no network, so that its failure does not hide a misspelt --data.
            plan(named, check_images=False, check_model=False)
        named.locate().fetch()

    world.on_first_process(fetch)
    return replace(experiment, model=world.all_or_none(lambda: model_name(experiment.model, beside)))


def _by_network(experiment: Experiment) -> bool:
    """Whether its model has to be fetched: it is of the hub, or its weights are not on this machine."""
    if experiment.model.startswith("hf-hub:"):
        return True
    download = experiment.locate().download
    return download is not None and not download.cached


def _plan(experiment: Experiment, observer: Observer, world: World) -> Plan:
    """The plan, with warnings about its data."""
    scan = observer.scan(world) if observer.scan else nullcontext()
    with one_first(experiment, world), scan as progress:
        settled = plan(experiment, progress=progress)
    if world.first:
        for warning in settled.warnings:
            observer.warn(warning)
        if observer.note is not None:
            observer.note(settled.division)
    return divisible(settled, world)


def _checked_model(settled: Plan) -> Student:
    """The pretrained model, if it has what the run trains."""
    model = settled.experiment.pretrained_model()
    check_trainable(settled, model)
    return model


@contextmanager
def one_first(experiment: Experiment, world: World) -> Iterator[None]:
    """A context in which one process of a machine reads all images, before the others find them in the cache."""
    with ExitStack() as stack:
        with suppress(OSError):  # without a folder for the cache each process reads all images
            path = cache_folder() / "scans" / f".{experiment.id}.lock"
            if world.size > 1 and not stack.enter_context(lock(path)):
                with lock(path, wait=True):  # until it is done; then all others at a time
                    pass
        yield


def divisible(settled: Plan, world: World) -> Plan:
    """The plan, if its batches divide among the processes."""
    if rest := settled.batch % world.size:
        near = f"--batch {settled.batch - rest} or {settled.batch - rest + world.size}"
        raise UserError(f"batch {settled.batch} does not divide among {world.size} processes: use {near}")
    own = settled.batch // world.size
    for k in {stage.distill_pairs for stage in settled.method.stages}:
        if k > 1 and (own % k or own < 2 * k):
            raise UserError(
                f"--distill-pairs {k}: a process has {own} pairs of each batch, and needs a multiple of {k}, at least "
                f"{2 * k}; use --batch {2 * k * world.size} or a larger multiple of {k * world.size}"
            )
    if settled.anchors is not None and (rest := min(settled.batch, len(settled.anchors)) % world.size):
        raise UserError(
            f"{len(settled.anchors)} anchor pairs, fewer than a batch, do not divide among {world.size} processes: "
            f"leave out {rest}, or use another number of processes"
        )
    return settled


def _other_machine(current: Run, world: World) -> str:
    """A note if the run began with another device, other versions or another number of threads or processes."""
    before = {**current.description.get("machine", {}), **current.description.get("versions", {})}
    now = {**world.describe(), **versions()}
    changes = [
        f"{name} {value}, now {now.get(name)}" for name, value in before.items() if now.get(name) != value
    ]
    if not changes:
        return ""
    return f"this run began with {'; '.join(changes)}: its result may differ in the last bits from an undisturbed run's"


@contextmanager
def _recording(current: Run, world: World, machine: Machine, observer: Observer) -> Iterator[None]:
    """A context in which this process alone writes to the run, sinks follow it, and errors name the way to go on."""
    resume = observer.again or command_line("resume", current.folder)
    if not world.first:
        current.recorder = NullRecorder(current.recorder.path)
    with ExitStack() as stack:
        world.on_first_process(lambda: stack.enter_context(current.locked()))
        stack.enter_context(forward_to_sinks(current, machine.log if world.first else (), observer.warn))
        try:
            with worker_errors(), world.guard():
                yield
        except NonFinite as error:  # every process has computed the same loss
            raise error if world.first else AlreadyReported from None
        except (Lost, WorkerLost) as error:
            raise type(error)(f"{error}. Go on with: {resume}") from None
        except OSError as error:
            kept = newest(current.resume)
            state = f"{kept[0]} is the newest checkpoint" if kept else "no checkpoint is written yet"
            kind = DiskFull if error.errno in FULL else UserError
            message = f"{os_error_message(error)}; {state}. When that is corrected, go on with: {resume}"
            raise kind(message) from error
