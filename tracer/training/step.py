"""One training step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from tracer.core.batch import Batch, Scene
from tracer.core.objective import Loss
from tracer.core.regularizers import Attached
from tracer.core.shadow import Shadow
from tracer.methods.base import Stage
from tracer.models.gradient_cache import embed_both
from tracer.models.prefix import SharedPrefix
from tracer.models.student import MAX_LOG_SCALE, Student
from tracer.parallel import World
from tracer.training.optim import Schedule


@dataclass
class State:
    """The student, teacher, optimiser and regularizer of a stage, and its counters."""

    stage: Stage
    student: Student
    shadow: Shadow[Student] | None
    optimiser: torch.optim.Optimizer
    regularizer: Attached | None
    schedule: Schedule
    world: World
    clip: float | None = None
    max_log_scale: float | None = MAX_LOG_SCALE  # upper bound of the learned logit scale; None: no bound
    prefix: SharedPrefix | None = None  # frozen first blocks, computed once for student and teacher
    chunk: int | None = None  # images per forward pass, if a whole batch does not fit in memory
    step: int = 0  # optimiser steps taken in this stage
    scene: Scene | None = None  # of the last step, for the logged dynamics

    @property
    def progress(self) -> float:
        """Share of the stage that is done."""
        return self.step / self.schedule.steps


def step(state: State, batch: Batch) -> Loss:
    """Forward, backward and update of the student; then the regularizer acts and the teacher follows."""
    student, world, objective = state.student, state.world, state.stage.objective
    teacher = state.shadow if "teacher" in objective.needs else None
    k = state.stage.distill_pairs if teacher else 1
    shown = None if k == 1 else world.to_device(batch.every(k))  # before, so that no device has to wait
    batch = world.to_device(batch)
    lr = state.schedule(state.step)

    with world.autocast():
        arguments = (teacher, batch, objective.needs, state.chunk, state.prefix, shown)
        embeddings = world.forward(embed_both, student, *arguments)
    state.scene = world.gather(Scene(*embeddings, batch.label, state.progress))
    loss = objective(state.scene)

    loss.total.backward()
    if state.regularizer:
        state.regularizer.pull()
    if state.clip:
        nn.utils.clip_grad_norm_(student.parameters(), state.clip)
    for group in state.optimiser.param_groups:
        group["lr"] = lr
    state.optimiser.step()
    state.optimiser.zero_grad(set_to_none=True)
    if state.max_log_scale is not None:
        student.clamp_scale(state.max_log_scale)
    if state.regularizer:
        state.regularizer.clamp(lr)
    state.step += 1
    if state.shadow:
        world.reshard(state.shadow.model)
        state.shadow.follow(student)
    return loss
