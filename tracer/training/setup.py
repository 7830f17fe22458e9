"""A stage about to take its first step: its students, their teachers, regularizers and optimisers, and its batches."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import torch

from tracer.core.teachers import Shadow
from tracer.data.loader import Batches
from tracer.data.transforms import Transform
from tracer.methods.base import Stage
from tracer.models.acceleration import compile_towers, end_early, save_memory
from tracer.models.registry import pretrained_tag
from tracer.models.student import Student, Weights, initialise_from, load, read_weights
from tracer.parallel import World
from tracer.runs.plan import Plan
from tracer.training.optim import Schedule, adamw
from tracer.training.step import State


def opened(plan: Plan, weights: Path | None = None) -> Student:
    """The pretrained student, or with the weights that a stage has left."""
    experiment = plan.experiment
    tag = pretrained_tag(experiment.model, experiment.pretrained)
    student = load(experiment.model, tag, seed=experiment.seed)
    if weights is not None:
        initialise_from(student, read_weights(weights))
    return student


def begin(
    plan: Plan, stage: Stage, steps: int, student: Student, pretrained: Weights, world: World
) -> list[State]:
    """A stage about to take its first step, once for each replica; the first one trains `student` itself."""
    experiment = plan.experiment
    if "scores" in stage.objective.needs and student.head is None:
        head = stage.head(student, plan.train, plan.templates, world, experiment.seed)
        student.head = head.to(world.device, student.mean.dtype)
    stage.tune(student)
    student.train()
    save_memory(student, chunk=experiment.chunk, checkpointing=experiment.checkpointing)
    end_early(student, "features" not in stage.objective.needs)
    count = plan.method.replicas.count if plan.method.replicas else 1
    students = [student, *(deepcopy(student) for _ in range(count - 1))]
    return [_state(plan, stage, steps, each, pretrained, world) for each in students]


def _state(
    plan: Plan, stage: Stage, steps: int, student: Student, pretrained: Weights, world: World
) -> State:
    experiment, policy, hold = plan.experiment, stage.policy(steps), None
    shadow = Shadow(student, policy, steps=steps) if policy else None
    world.prepare(student, shadow.model if shadow else None)
    if experiment.compile:
        compile_towers(student, *([shadow.model] if shadow else []))
    if stage.regularizer is not None:
        trained = {name: p for name, p in student.named_parameters() if p.requires_grad}
        anchors = {name: pretrained.get(name, p.detach()) for name, p in trained.items()}
        hold = world.attach(stage.regularizer, trained, anchors)
    return State(
        stage=stage,
        student=student,
        shadow=shadow,
        optimiser=adamw(student, experiment.decay, experiment.decay_on),
        hold=hold,
        schedule=Schedule(experiment.lr * stage.rate, min(plan.warmup, steps - 1), steps),
        world=world,
        clip=experiment.clip,
        chunk=experiment.chunk,
    )


def batches(plan: Plan, state: State, replica: int) -> Batches:
    """The data of one replica: the task's, with the further texts and anchor pairs that the stage wants."""
    experiment, stage, student = plan.experiment, state.stage, state.student
    needs = stage.objective.needs
    probe = None
    if stage.probe and "probe" in needs:
        with torch.no_grad():
            probe = state.world.forward(stage.probe.prepare, student, plan.train.classes)
    common: dict[str, Any] = {
        "seed": experiment.seed if replica == 0 else mix(experiment.seed, replica << 40),
        "transform": Transform(student.preprocess, experiment.augment, drafts=experiment.decode == "draft"),
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


def mix(seed: int, step: int) -> int:
    """A seed for each step, so that dropout too is a function of seed and step."""
    return (seed * 0x9E3779B97F4A7C15 + step) % 2**63
