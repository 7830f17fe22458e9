"""The loop: stages, batches, evaluation points, checkpoints. It yields reports and prints nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from tracer.core.dynamics import distance, probes
from tracer.core.errors import UserError
from tracer.core.objective import Loss
from tracer.core.teachers import Shadow
from tracer.core.weights import check_finite
from tracer.data.loader import loader
from tracer.evaluation.held_out import held_out_accuracy
from tracer.evaluation.predict import Scorer
from tracer.methods.finish import Trained
from tracer.models.student import Student, Weights
from tracer.parallel import World
from tracer.runs.plan import Plan
from tracer.runs.run import Run
from tracer.training import checkpoint as checkpoints
from tracer.training.interrupt import Interrupt, Interrupted
from tracer.training.replicas import Rounds, capture, meet, restore
from tracer.training.setup import batches, begin, mix, opened
from tracer.training.step import State, step


class NonFinite(UserError):
    """The loss left the numbers; the last good checkpoint is kept."""


@dataclass(frozen=True)
class Report:
    """Where a run stands."""

    step: int
    steps: int
    loss: float | None = None
    accuracy: float | None = None
    gap: float | None = None  # KL between teacher and student
    message: str | None = None
    warning: str | None = None  # something was damaged, and mended as far as possible


@dataclass(frozen=True)
class Pace:
    """How often things happen, in steps."""

    log: int
    evaluate: int
    save: int

    @classmethod
    def of(cls, steps: int, save: int | None = None, evaluate: int | None = None) -> Pace:
        return cls(
            log=max(1, min(10, steps // 50)),
            evaluate=evaluate or max(1, steps // 10),
            save=save or max(1, steps // 20),
        )


def train(
    plan: Plan,
    run: Run,
    world: World,
    *,
    save_every: int | None = None,
    evaluate_every: int | None = None,
    workers: int = 0,
) -> Iterator[Report]:
    """Run or resume: go on from the newest checkpoint if there is one, finish with weights and a result."""
    student = opened(plan)
    pretrained = _copied(student)
    world.place(student)
    found = checkpoints.latest(run.resume)
    last, damages = (found[0], found[2]) if found else (-1, [])
    if unreadable := run.recorder.rewind(last):
        damages.append(f"{unreadable} lines of {run.recorder.path.name} are damaged, and left out")
    for damage in damages:
        run.recorder.log(last, "warning", message=damage)
        yield Report(max(0, last), plan.steps, warning=damage)
    pace, shadow, done = Pace.of(plan.steps, save_every, evaluate_every), None, 0
    with Interrupt() as interrupt:
        for index, (stage, length) in enumerate(zip(plan.method.stages, plan.stage_steps, strict=True)):
            ended = run.weights_file(
                f"stage-{index}"
            )  # written between the last checkpoint and the next stage
            if found and found[0] >= done + length and ended.exists():
                done += length
                continue
            if index:  # from the file, whether or not this process has trained the stage before
                student = opened(plan, run.weights_file(f"stage-{index - 1}"))
                world.place(student)
            states = begin(plan, stage, length, student, pretrained, world)
            rounds = Rounds([batches(plan, state, replica) for replica, state in enumerate(states)])
            start = _copied(student) if plan.method.replicas else {}
            if found and found[0] > done:
                restore(states, found[1])
                found = None  # its tensors would take as much memory as training itself
            yield from _stage(plan, run, states, rounds, start, done, pace, interrupt, workers)
            shadow, done = states[0].shadow, done + length
            states.clear()  # the optimiser has done its work
            if index + 1 < len(plan.method.stages):
                world.reshard(student)
                weights = world.whole(student.state_dict())
                world.lead(partial(run.keep, f"stage-{index}", weights))
    yield _finish(plan, run, student, shadow, pretrained, world, workers)


def _copied(student: Student) -> Weights:
    return {name: tensor.clone() for name, tensor in student.state_dict().items()}


def _stage(
    plan: Plan,
    run: Run,
    states: Sequence[State],
    rounds: Rounds,
    start: Weights,
    done: int,
    pace: Pace,
    interrupt: Interrupt,
    workers: int,
) -> Iterator[Report]:
    """Train one stage from wherever `states` are; `done` is the number of steps before the stage."""
    state, replicas, seed = states[0], plan.method.replicas, plan.experiment.seed
    end = done + state.schedule.steps
    unseen: list[tuple[int, Loss]] = []  # losses stay on the device until the log asks for them
    pin = state.world.device.type == "cuda"
    for round_ in loader(rounds, range(done + state.step, end), workers, pin=pin):
        now = done + state.step + 1
        for replica, (each, batch) in enumerate(zip(states, round_, strict=True)):
            torch.manual_seed(mix(seed, now - 1 + (replica << 40) + (each.world.rank << 50)))
            unseen.append((now, step(each, batch)))
        if replicas and (replicas.due(now - done, rounds.per_epoch) or now == end):
            meet(replicas.merge, start, states)
        logging, saving = now % pace.log == 0, now % pace.save == 0 or now == end
        asked = state.world.agree(interrupt.asked, logging or saving)
        saving = saving or asked is not None
        if logging or saving:
            yield _logged(plan, run, state, unseen)
        if now % pace.evaluate == 0 or now == end:
            yield _evaluated(plan, run, state, now, workers)
        if saving:
            state.world.lead(partial(_save, run, now, capture(states)))
        if asked is not None and now < plan.steps:
            raise Interrupted(asked, now)


def _save(run: Run, now: int, checkpoint: checkpoints.Checkpoint) -> None:
    """Keep a checkpoint, unless the last gradient has left something that no step can mend."""
    for owner, weights in checkpoint.tensors.items():
        if owner.startswith(("student", "teacher")):
            try:
                check_finite(weights, what=f"the {owner}'s weights after step {now}")
            except UserError as error:
                raise NonFinite(f"{error}; {_advice(run)}") from None
    checkpoints.save(run.resume, now, checkpoint)


def _advice(run: Run) -> str:
    return f"the last good checkpoint, if any, is in {run.resume}. A lower --lr or --clip 1 often helps"


def _logged(plan: Plan, run: Run, state: State, unseen: list[tuple[int, Loss]]) -> Report:
    """Write the newest loss; refuse to go on if any since the last time was not a number."""
    for at, loss in unseen:
        if not torch.isfinite(loss.total):
            broken = [name for name, part in loss.parts.items() if not torch.isfinite(part)]
            raise NonFinite(
                f"the loss is not finite at step {at} (term: {', '.join(broken) or 'their sum'}); {_advice(run)}"
            )
    at, loss = unseen[-1]
    total = float(loss.total.detach())
    unseen.clear()
    seen = {name: float(value) for name, value in {**loss.parts, **_watched(state)}.items()}
    if state.shadow:
        seen["teacher_age"] = state.shadow.age
    run.recorder.log(at, "train", loss=total, lr=state.schedule(state.step - 1), **seen)
    return Report(at, plan.steps, loss=total, gap=seen.get("kl"))


def _watched(state: State) -> dict[str, Tensor]:
    if state.scene is None:
        return {}
    return {"scale": torch.as_tensor(state.scene.student.scale).detach(), **probes(state.scene)}


def _evaluated(plan: Plan, run: Run, state: State, now: int, workers: int) -> Report:
    scorer = Scorer(state.student, state.world, plan.train.classes, workers)
    accuracy = held_out_accuracy(scorer, scorer.embed(plan.held_out), plan.templates)
    state.world.reshard(state.student)
    gap = {"weight_gap": float(distance(state.student, state.shadow.model))} if state.shadow else {}
    run.recorder.log(now, "held_out", accuracy=accuracy, **gap)
    return Report(now, plan.steps, accuracy=accuracy)


def _finish(
    plan: Plan,
    run: Run,
    student: Student,
    shadow: Shadow | None,
    pretrained: Weights,
    world: World,
    workers: int,
) -> Report:
    """Keep student, teacher and result; write down what the held-out data say before and after."""
    from tracer.evaluation.summary import outcome

    world.reshard(student)
    teacher = world.whole(shadow.model.state_dict()) if shadow else None
    world.lead(partial(_keep, plan, run, Trained(pretrained, world.whole(student.state_dict()), teacher)))
    result = outcome(plan, run, world, workers)
    return Report(plan.steps, plan.steps, accuracy=result["after"]["accuracy"], message="done")


def _keep(plan: Plan, run: Run, trained: Trained) -> None:
    run.keep("student", trained.student)
    if trained.teacher is not None:
        run.keep("teacher", trained.teacher)
    run.keep("result", plan.method.finish(trained))
