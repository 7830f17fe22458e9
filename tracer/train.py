"""The loop: stages, batches, evaluation points, checkpoints. It yields reports and prints nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tracer import checkpoint as checkpoints
from tracer.data.loader import Batches, loader
from tracer.data.transforms import Transform
from tracer.dynamics import distance, probes
from tracer.errors import UserError
from tracer.evaluate import Scorer, held_out_accuracy
from tracer.finish import Trained
from tracer.interrupt import Interrupt, Interrupted
from tracer.method import Stage
from tracer.model import Student, Weights, initialise_from, load, read_weights
from tracer.objective import Loss
from tracer.optim import Schedule, adamw
from tracer.parallel import World
from tracer.plan import Plan
from tracer.replicas import Rounds, capture, meet, restore
from tracer.run import Run
from tracer.step import State, step
from tracer.teachers import Shadow
from tracer.thrift import save_memory
from tracer.zoo import pretrained_tag


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
    experiment = plan.experiment
    student = load(
        experiment.model, pretrained_tag(experiment.model, experiment.pretrained), seed=experiment.seed
    )
    pretrained = {name: tensor.clone() for name, tensor in student.state_dict().items()}
    world.place(student)
    found = checkpoints.latest(run.resume)
    if found:
        for damage in found[2]:
            yield Report(found[0], plan.steps, message=damage)
    run.recorder.rewind(found[0] if found else -1)
    pace, shadow, done = Pace.of(plan.steps, save_every, evaluate_every), None, 0
    with Interrupt() as interrupt:
        for index, (stage, length) in enumerate(zip(plan.method.stages, plan.stage_steps, strict=True)):
            ended = run.weights_file(
                f"stage-{index}"
            )  # written between the last checkpoint and the next stage
            if found and found[0] >= done + length and ended.exists():
                initialise_from(student, read_weights(ended))
                done += length
                continue
            states = begin(plan, stage, length, student, pretrained, world)
            rounds = Rounds([_batches(plan, state, replica) for replica, state in enumerate(states)])
            start = {name: tensor.clone() for name, tensor in student.state_dict().items()}
            if found and found[0] > done:
                restore(states, found[1])
            yield from _stage(plan, run, states, rounds, start, done, pace, interrupt, workers)
            shadow, done = states[0].shadow, done + length
            if index + 1 < len(plan.method.stages):
                run.keep(f"stage-{index}", student.state_dict())
    yield _finish(plan, run, student, shadow, pretrained, world)


def begin(
    plan: Plan, stage: Stage, steps: int, student: Student, pretrained: Weights, world: World
) -> list[State]:
    """A stage about to take its first step, once for each replica; the first one trains `student` itself."""
    experiment = plan.experiment
    if "scores" in stage.objective.needs and student.head is None:
        head = stage.head(student, plan.train, plan.templates, world, experiment.seed)
        student.head = head.to(world.device)
    stage.tune(student)
    student.train()
    save_memory(student, chunk=experiment.chunk, checkpointing=experiment.checkpointing)
    count = plan.method.replicas.count if plan.method.replicas else 1
    students = [student, *(deepcopy(student) for _ in range(count - 1))]
    return [_state(plan, stage, steps, each, pretrained, world) for each in students]


def _state(
    plan: Plan, stage: Stage, steps: int, student: Student, pretrained: Weights, world: World
) -> State:
    experiment, policy, hold = plan.experiment, stage.policy(steps), None
    if stage.tether is not None:
        trained = {name: p for name, p in student.named_parameters() if p.requires_grad}
        anchors = {n: pretrained.get(n, p.detach()).to(p.device, copy=True) for n, p in trained.items()}
        hold = stage.tether.fasten(trained, anchors)
    return State(
        stage=stage,
        student=student,
        shadow=Shadow(student, policy, steps=steps) if policy else None,
        optimiser=adamw(student, experiment.decay, experiment.decay_on),
        hold=hold,
        schedule=Schedule(experiment.lr * stage.rate, min(plan.warmup, steps - 1), steps),
        world=world,
        clip=experiment.clip,
        chunk=experiment.chunk,
    )


def _batches(plan: Plan, state: State, replica: int) -> Batches:
    """The data of one replica: the task's, with the further texts and anchor pairs that the stage wants."""
    experiment, stage, student = plan.experiment, state.stage, state.student
    needs = stage.objective.needs
    probe = stage.probe.prepare(student, plan.train.classes) if stage.probe and "probe" in needs else None
    common: dict[str, Any] = {
        "seed": experiment.seed if replica == 0 else _mix(experiment.seed, replica << 40),
        "transform": Transform(student.preprocess, experiment.augment),
        "templates": plan.templates,
        "rank": state.world.rank,
        "ranks": state.world.size,
    }
    anchors = None
    if plan.anchors is not None and "anchors" in needs:
        size = min(plan.batch, len(plan.anchors) - len(plan.anchors) % state.world.size)
        anchors = Batches(plan.anchors, batch=size, tokeniser=student.tokeniser, **common)
    tokeniser = student.tokeniser if "text" in needs else None
    return Batches(plan.train, batch=plan.batch, tokeniser=tokeniser, probe=probe, anchors=anchors, **common)


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
    for batches in loader(rounds, range(done + state.step, end), workers, pin=pin):
        now = done + state.step + 1
        for replica, (each, batch) in enumerate(zip(states, batches, strict=True)):
            torch.manual_seed(_mix(seed, now - 1 + (replica << 40)))
            unseen.append((now, step(each, batch)))
        if replicas and (replicas.due(now - done, rounds.per_epoch) or now == end):
            meet(replicas.merge, start, states)
        saving = now % pace.save == 0 or now == end or interrupt.asked is not None
        if now % pace.log == 0 or saving:
            yield _logged(plan, run, state, unseen)
        if now % pace.evaluate == 0 or now == end:
            yield _evaluated(plan, run, state, now)
        if saving:
            checkpoints.save(run.resume, now, capture(states))
        if interrupt.asked is not None and now < plan.steps:
            raise Interrupted(interrupt.asked, now)


def _mix(seed: int, step: int) -> int:
    """A seed for each step, so that dropout too is a function of seed and step."""
    return (seed * 0x9E3779B97F4A7C15 + step) % 2**63


def _logged(plan: Plan, run: Run, state: State, unseen: list[tuple[int, Loss]]) -> Report:
    """Write the newest loss; refuse to go on if any since the last time was not a number."""
    for at, loss in unseen:
        if not torch.isfinite(loss.total):
            broken = [name for name, part in loss.parts.items() if not torch.isfinite(part)]
            raise NonFinite(
                f"the loss is not finite at step {at} (term: {', '.join(broken) or 'their sum'}); "
                f"the last good checkpoint is in {run.resume}. A lower --lr or --clip 1 often helps"
            )
    at, loss = unseen[-1]
    total = float(loss.total.detach())
    unseen.clear()
    seen = {name: float(value) for name, value in {**loss.parts, **_watched(state)}.items()}
    run.recorder.log(at, "train", loss=total, lr=state.schedule(state.step - 1), **seen)
    return Report(at, plan.steps, loss=total, gap=seen.get("kl"))


def _watched(state: State) -> dict[str, Tensor]:
    scale = {"scale": state.student.scale.detach()}
    return scale if state.scene is None else {**scale, **probes(state.scene)}


def _evaluated(plan: Plan, run: Run, state: State, now: int) -> Report:
    scorer = Scorer(state.student, state.world, plan.train.classes)
    accuracy = held_out_accuracy(scorer, plan.held_out, plan.templates)
    gap = {"weight_gap": float(distance(state.student, state.shadow.model))} if state.shadow else {}
    run.recorder.log(now, "held_out", accuracy=accuracy, **gap)
    return Report(now, plan.steps, accuracy=accuracy)


def _finish(
    plan: Plan, run: Run, student: Student, shadow: Shadow | None, pretrained: Weights, world: World
) -> Report:
    """Keep student, teacher and result; write down what the held-out data say before and after."""
    from tracer.outcome import outcome

    trained = Trained(pretrained, student.state_dict(), dict(shadow.model.state_dict()) if shadow else None)
    run.keep("student", trained.student)
    if trained.teacher is not None:
        run.keep("teacher", trained.teacher)
    run.keep("result", plan.method.finish(trained))
    result = outcome(plan, run, world)
    return Report(plan.steps, plan.steps, accuracy=result["after"]["accuracy"], message="done")
