"""About how long the steps of a plan take on a device: one step on a few blank images, times their number."""

from __future__ import annotations

import time

import torch

from tracer.core.batch import Scene
from tracer.methods.base import Stage
from tracer.models.gradient_cache import embed_both
from tracer.models.student import Student
from tracer.parallel import World
from tracer.runs.plan import Plan
from tracer.training.memory.estimate import prepared
from tracer.training.memory.simulation import sample_batch

FIRST = 4  # images that are timed first; then four times as many, up to a batch,
LONG = 1.0  # until a step takes so many seconds


def training_seconds(plan: Plan, device: str, precision: str = "auto") -> float:
    """Seconds of forward and backward passes over all steps, without reading data, evaluating and saving."""
    world = World(device, precision)
    student = plan.experiment.pretrained_model(random=True)
    replicas = plan.method.replicas.count if plan.method.replicas else 1
    seconds = 0.0
    for stage in plan.method.stages:
        if stage.share:
            seconds += stage.share * _step(plan, *prepared(plan, stage, student), world)
    return replicas * plan.steps * seconds


def _step(plan: Plan, stage: Stage, student: Student, world: World) -> float:
    """Seconds of one step of a whole batch."""
    world.place(student)
    count = min(plan.batch, FIRST)
    _seconds(plan, stage, student, world, count)  # the first step is slower
    while (seconds := _seconds(plan, stage, student, world, count)) < LONG and count < plan.batch:
        count = min(plan.batch, 4 * count)
    return seconds * plan.batch / count


def _seconds(plan: Plan, stage: Stage, student: Student, world: World, count: int) -> float:
    """Seconds of a forward and backward pass of this many blank images and their texts."""
    batch = world.to_device(sample_batch(plan, stage, student, count))
    teacher = torch.no_grad()(student) if "teacher" in stage.objective.needs else None  # of the same size
    start = time.perf_counter()
    with world.autocast():
        both = embed_both(student, teacher, batch, stage.objective.needs, plan.experiment.chunk)
    loss = stage.objective(world.gather(Scene(*both, batch.label))).total
    loss.backward()
    loss.item()  # waits for the device
    return time.perf_counter() - start
