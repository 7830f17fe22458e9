"""What a run writes to its folder, in bytes, known before it begins."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tracer.core.errors import UserError
from tracer.core.teachers import Frozen
from tracer.methods.base import Stage, keep_student
from tracer.models.adapters import adapter
from tracer.models.student import Head, Student
from tracer.models.trainable import HeadOnly
from tracer.runs.plan import Plan
from tracer.storage.room import require_room, size, size_text
from tracer.training.checkpoint import MAX_CHECKPOINTS, changing
from tracer.training.pace import log_interval
from tracer.training.setup import fit, prepare

HEADER = 150  # bytes that a file says of each tensor
SMALL = 1 << 16  # bytes of the files that describe a run and its result
LINE = 400  # bytes of the log
ID = 40  # bytes of an image's name


class Footprint(NamedTuple):
    """Bytes of a run by what they are for; `checkpoint` is of one."""

    checkpoint: int
    weights: int
    predictions: int
    log: int

    @property
    def total(self) -> int:
        """The most that lies on the disk at a time."""
        return MAX_CHECKPOINTS * self.checkpoint + self.weights + self.predictions + self.log


def footprint(plan: Plan, model: Student) -> Footprint:
    """What the run of a plan with this pretrained model writes."""
    stages = [
        (stage, steps) for stage, steps in zip(plan.method.stages, plan.stage_steps, strict=True) if steps
    ]
    replicas = plan.method.replicas.count if plan.method.replicas else 1
    checkpoint = max((_checkpoint(plan, stage, steps, model) for stage, steps in stages), default=0)
    head = any("scores" in stage.objective.needs for stage, _ in stages) and model.head is None
    whole = model_bytes(model) + (4 * len(plan.train.classes) * model.config["embed_dim"] if head else 0)
    teacher = bool(stages) and stages[-1][0].policy(stages[-1][1]) is not None
    files = max(0, len(stages) - 1) + 1 + teacher + (plan.method.finish is not keep_student)
    row = 4 * len(plan.train.classes) + 8 + ID
    names = sum(len(name.encode(errors="replace")) + 8 for name in plan.train.classes)
    predictions = 2 * (len(plan.held_out) * row + names + 4 * HEADER) if plan.train.labelled else 0
    log = SMALL + LINE * (plan.steps // log_interval(plan.steps) + 10)
    return Footprint(replicas * checkpoint, files * whole, predictions, log)


def require_run_room(plan: Plan, model: Student, folder: Path) -> None:
    """Raise DiskFull if what the run will write, beside what it has written, has no room in its folder."""
    needed = footprint(plan, model)
    begun = sum(size(folder / name) for name in ("resume", "weights", "predictions"))
    less = "make room, or give --out on another disk"
    if (smaller := _adapted(plan, model)) is not None and smaller.total < needed.total:
        less += f"; --adapter lora needs {size_text(smaller.total)}"
    parts = f"{size_text(needed.weights)} of weights and two checkpoints of {size_text(needed.checkpoint)}"
    require_room(folder, needed.total - begun, f"this run ({parts})", less)


def _adapted(plan: Plan, model: Student) -> Footprint | None:
    """What the same run with an adapter would write, if it can have one and has none."""
    if plan.adapter is not None or all(isinstance(stage.tune, HeadOnly) for stage in plan.method.stages):
        return None
    try:
        return footprint(replace(plan, adapter=adapter("lora")), model)
    except UserError:
        return None


def _checkpoint(plan: Plan, stage: Stage, steps: int, model: Student) -> int:
    """Bytes of a checkpoint in this stage: the student, its optimiser, a teacher, and the state of a regularizer."""
    student, stage = _same_values(model), fit(stage, model)
    if "scores" in stage.objective.needs and student.head is None:
        student.head = Head(torch.zeros(len(plan.train.classes), model.config["embed_dim"]))
    prepare(plan, stage, student, steps)
    named = dict(student.named_parameters())
    trained = [parameter for parameter in named.values() if parameter.requires_grad]
    own = _bytes(changing(student, student.state_dict()).values())
    count = own + 2 * _bytes(trained) + (4 + HEADER) * len(trained)  # Adam's moments and count of steps
    if (policy := stage.policy(steps)) is not None:
        count += own
        if not isinstance(policy, Frozen):  # what fp32 rounds off the averages of vectors
            count += _bytes(each for each in trained if each.ndim < 2)
    if stage.regularizer is not None:
        count += (stage.regularizer.copies - 1) * _bytes(trained)  # its anchors are not saved
    return count


def _same_values(model: Student) -> Student:
    """A copy of a student with parameters of its own, which share their memory with the model's."""
    memo: dict[int, Tensor] = {id(each): each for each in model.buffers()}
    memo |= {id(p): nn.Parameter(p.detach(), requires_grad=p.requires_grad) for p in model.parameters()}
    return deepcopy(model, memo)


def model_bytes(model: Student) -> int:
    """Bytes of a file of its weights."""
    return _bytes(model.state_dict().values())


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(each.numel() * each.element_size() + HEADER for each in tensors)
