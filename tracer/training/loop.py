"""The training loop: stages, logging, evaluation on held-out data, checkpoints."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from tracer.core.dynamics import dynamics
from tracer.core.errors import NonFinite, UserError
from tracer.core.objective import Loss
from tracer.core.weights import check_finite
from tracer.data.loader import loader
from tracer.evaluation.pretrained import measure_pretrained
from tracer.evaluation.summary import score_result, write_summary
from tracer.methods.base import Trained, keep_student
from tracer.models.running_statistics import moved
from tracer.models.student import Student, initialise_from, read_weights
from tracer.parallel import World
from tracer.runs.plan import Plan
from tracer.runs.run import Run
from tracer.training import checkpoint as checkpoints
from tracer.training.checkpoint import CheckpointWriter
from tracer.training.interrupt import Interrupt, Interrupted
from tracer.training.learner import Learner
from tracer.training.pace import Clock, Pace
from tracer.training.result import keep_result, merged_weights
from tracer.training.setup import build_learner, decode_scored_images
from tracer.training.step import State
from tracer.training.watch import Watch


@dataclass(frozen=True)
class Report:
    """The state of a run at one step."""

    step: int
    steps: int
    loss: float | None = None
    accuracy: float | None = None  # on the held-out set, at this step
    images: int | None = None  # held-out images that the accuracy is of: a short run is watched on a part
    gap: float | None = None  # KL between teacher and student
    message: str | None = None
    warning: str | None = None
    seconds: dict[str, float] | None = None  # at the end: what this process has spent its time on


class Training:
    """Trains a run from its newest checkpoint, or from the start, to its result.

    Iterating over it trains, and yields a `Report` every few steps. `finish` iterates to the end. A training that is
    created and never iterated warns when it is deleted.
    """

    def __init__(
        self,
        plan: Plan,
        run: Run,
        world: World,
        *,
        save_every: int | None = None,
        evaluate_every: int | None = None,
        workers: int = 0,
        clock: Clock | None = None,
        model: Student | None = None,
    ) -> None:
        self.model = model  # the pretrained one, if it is loaded already
        self.plan, self.run, self.world, self.workers = plan, run, world, workers
        self.clock = clock or Clock()
        self.pace = Pace(plan.steps, world, self.clock, save_every, evaluate_every)
        self.interrupt = Interrupt(run.folder)
        self.writer, self._saved = CheckpointWriter(run.resume), 0  # the step of the last checkpoint
        # Nothing changes the last state: it is written, without a copy, while the result is scored.
        self._ends_beside = world.size == 1 and world.device.type == "cpu"
        self._keeps_student = plan.method.finish is keep_student
        self._started = False

    def finish(self, callback: Callable[[Report], object] | None = None) -> Run:
        """Train to the end; `callback` receives every report. Returns the finished run."""
        for report in self:
            if callback is not None:
                callback(report)
        return self.run

    def __iter__(self) -> Iterator[Report]:
        self._started = True
        return self._train()

    def __del__(self) -> None:
        if not getattr(self, "_started", True):
            message = f"{self.run.folder} was not trained: iterate over its Training, or call finish()"
            warnings.warn(message, RuntimeWarning, stacklevel=2)

    def _train(self) -> Iterator[Report]:
        plan, run, world = self.plan, self.run, self.world
        with self.interrupt, self.writer:
            with self._starting():
                model = (
                    self.model or plan.experiment.pretrained_model()
                )  # built once; students are copies of it
                latest = checkpoints.latest(run.resume)
            yield from self._rewind_log(latest)
            self._saved = self.interrupt.step = latest.step if latest else 0
            if latest:
                yield Report(latest.step, plan.steps, message=f"goes on from step {latest.step}")
            with self.clock.measure("evaluating"), self.interrupt.at_once():
                plan = self.plan = decode_scored_images(plan, model, world, self.workers)
                self.watch = Watch(plan, run, world, self.workers)
                before = measure_pretrained(plan, world, model, self.workers)
            self.pace.evaluated(self.clock.seconds["evaluating"])
            if latest is None and plan.steps:
                accuracy, images = self.watch.log_hits(0, before.hits), len(self.watch.indices)
                yield Report(0, plan.steps, accuracy=accuracy, images=images)
            student, shadow, done, gap = model, None, 0, {}
            for index, (stage, steps) in enumerate(zip(plan.method.stages, plan.stage_steps, strict=True)):
                if latest and latest.step >= done + steps and self._stage_weights(index).exists():
                    done += steps  # the stage is complete: its weights are written after its last checkpoint
                    continue
                with self._starting():
                    student = deepcopy(model)
                    if index > 0:
                        initialise_from(student, read_weights(self._stage_weights(index - 1)))
                    world.place(student)
                    learner = build_learner(plan, stage, steps, student, model.state_dict(), world)
                    if latest and latest.step > done:
                        learner.restore(latest.checkpoint)
                        latest = None  # free its tensors, which take as much memory as the state itself
                yield from self._train_stage(learner, done)
                shadow, done = learner.state.shadow, done + steps
                gap = self.watch.weight_gap(learner.state)
                if index + 1 < len(plan.method.stages):
                    world.reshard(student)
                    weights = merged_weights(plan, world, student)
                    world.on_first_process(partial(run.keep, f"stage-{index}", weights))
                del learner  # the optimiser is no longer needed
            with self.clock.measure("end"), self.interrupt.at_once():
                world.reshard(student)
                writer = self.writer if self._ends_beside and student is not model else None
                teacher = merged_weights(plan, world, shadow.model) if shadow else None
                trained = Trained(model.state_dict(), merged_weights(plan, world, student), teacher)
                result = keep_result(plan, run, world, trained, writer)
                statistics_moved = moved(model, trained.pretrained, result)  # before `model` holds the result
                after = score_result(plan, world, model, result, before, self.workers)
                world.on_first_process(self.writer.finish)
                write_summary(plan, run, world, before, after, statistics_moved=statistics_moved)
        if plan.steps and self._keeps_student:
            self.watch.log_hits(plan.steps, after.hits, **gap)
        self._log_time(plan.steps)
        end = Report(plan.steps, plan.steps, accuracy=after.accuracy, images=len(after.hits))
        yield replace(end, message=f"done in {self.clock}", seconds=self.clock.seconds)

    @contextmanager
    def _starting(self) -> Iterator[None]:
        """Work before a first step, which a signal ends at once."""
        with self.clock.measure("start"), self.interrupt.at_once():
            yield

    def _rewind_log(self, latest: checkpoints.Latest | None) -> Iterator[Report]:
        """Drop log lines written after the checkpoint; yields a report for each damaged file."""
        step, messages = (latest.step, list(latest.warnings)) if latest else (-1, [])
        if unreadable := self.run.recorder.rewind(step):
            messages.append(f"{unreadable} lines of {self.run.recorder.path.name} are damaged and left out")
        for message in messages:
            self.run.recorder.log(step, "warning", message=message)
            yield Report(max(0, step), self.plan.steps, warning=message)

    def _train_stage(self, learner: Learner, before: int) -> Iterator[Report]:
        """Take the remaining steps of a stage; `before` is the number of steps of earlier stages."""
        state, world, clock = learner.state, self.world, self.clock
        end = before + state.schedule.steps
        pending: list[tuple[int, Loss]] = []  # losses stay on the device until they are logged
        numbers = range(before + state.step, end)
        batches = loader(learner.data, numbers, self.workers, pin=world.device.type == "cuda")
        for batch in clock.wait_for(batches):
            step = before + state.step + 1
            with clock.measure("steps"):
                pending += [(step, loss) for loss in learner.step(step, batch)]
                received, failed = self.interrupt.received, self.writer.failed
                log, evaluate, save, signal = self.pace.after(step, step == end, received, failed)
                if log or evaluate or save:
                    self._check_finite(pending)
            report = None
            if log:
                report = self._log(state, *pending[-1])
                pending.clear()
            if step == self.plan.steps and self._keeps_student:
                evaluate = False  # the result is scored next
            if evaluate and (signal is None or step == end):
                self._finish_saving()  # the processes that read images are not forked beside its thread
                try:
                    report = self._evaluate(state, step, report or Report(step, self.plan.steps))
                except Interrupted as interrupted:
                    save, signal = True, interrupted.signal_number
            if report is not None:
                yield report
            if save:
                self._save(step, learner)
            if signal is not None or (step == end and not self._is_final(step)):
                self._finish_saving()
            if signal is not None:
                self._log_time(step)
                raise Interrupted(signal, step, self.run.folder)

    def _check_finite(self, losses: list[tuple[int, Loss]]) -> None:
        """Raise if a loss is NaN or infinite."""
        for step, loss in losses:
            if not torch.isfinite(loss.total):
                terms = [name for name, part in loss.parts.items() if not torch.isfinite(part)]
                where = f"step {step} (term: {', '.join(terms) or 'their sum'})"
                raise NonFinite(f"the loss is not finite at {where}; {self._advice}")

    def _log(self, state: State, step: int, loss: Loss) -> Report:
        """Write the loss of a step to the log."""
        total = float(loss.total.detach())
        values = {name: float(value) for name, value in {**loss.parts, **dynamics(state.scene)}.items()}
        if state.shadow:
            values["teacher_age"] = state.shadow.age
        self.run.recorder.log(step, "train", loss=total, lr=state.schedule(state.step - 1), **values)
        return Report(step, self.plan.steps, loss=total, gap=values.get("kl"))

    def _evaluate(self, state: State, step: int, report: Report) -> Report:
        """The report of this step with the accuracy on held-out images, which is logged.

        In a single process a signal ends it with `Interrupted`, unless the stage ends here; several processes have to
        evaluate to the end together.
        """
        started = self.clock.seconds["evaluating"]
        alone = self.world.size == 1 and state.progress < 1
        with self.clock.measure("evaluating"), self.interrupt.at_once() if alone else nullcontext():
            accuracy = self.watch.evaluate(state, step)
        self.pace.evaluated(self.clock.seconds["evaluating"] - started)
        return replace(report, accuracy=accuracy, images=len(self.watch.indices))

    def _save(self, step: int, learner: Learner) -> None:
        """Begin to write a checkpoint; raise if a weight is NaN or infinite, so that the last good one is kept."""
        self._finish_saving()
        started = self.clock.seconds["saving"]
        with self.clock.measure("saving"):
            checkpoint = learner.capture()
            self.world.on_first_process(partial(self._begin_saving, step, checkpoint))
        self._saved = step
        if self._is_final(step):
            self.interrupt.step = step  # the writer's end waits for it
        self.pace.saved(self.clock.seconds["saving"] - started + self.writer.seconds)

    def _begin_saving(self, step: int, checkpoint: checkpoints.Checkpoint) -> None:
        for owner, weights in checkpoint.tensors.items():
            if owner.startswith(("student", "teacher")):
                try:
                    check_finite(weights, what=f"the {owner}'s weights after step {step}")
                except UserError as error:
                    raise NonFinite(f"{error}; {self._advice}") from None
        self.writer.begin(step, checkpoint, final=self._is_final(step))

    def _is_final(self, step: int) -> bool:
        """Whether the checkpoint of this step is written while the result is scored."""
        return self._ends_beside and step == self.plan.steps

    def _finish_saving(self) -> None:
        """Wait until the last checkpoint is on the disk; an error in writing it is raised in all processes."""
        with self.clock.measure("saving"):
            self.world.on_first_process(self.writer.finish)
        self.interrupt.step = self._saved

    def _log_time(self, step: int) -> None:
        """Log what this process has spent its time on; the sum over the lines of a run is the time of the run."""
        seconds = {name: round(value, 3) for name, value in self.clock.seconds.items()}
        self.run.recorder.log(step, "time", **seconds, processes=self.world.size)

    def _stage_weights(self, index: int) -> Path:
        return self.run.weights_file(f"stage-{index}")

    @property
    def _advice(self) -> str:
        return (
            f"the last good checkpoint, if any, is in {self.run.resume}. A lower --lr or --clip 1 often helps"
        )
