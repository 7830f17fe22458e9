"""The first step of a stage on tensors that have shapes and no contents: what it would take, at no cost."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)
from torch.utils._pytree import tree_map_only

from tracer.core.batch import Batch, Embedding, Scene
from tracer.data.loader import Batches
from tracer.data.transforms import Transform
from tracer.methods.base import Stage
from tracer.models.gradient_cache import embed_both
from tracer.models.student import Student
from tracer.runs.plan import Plan
from tracer.training.memory.allocations import Ledger

# What a model does that looks at values: then shapes are not enough.
DEFIANT = (DataDependentOutputException, DynamicOutputShapeException, UnsupportedFakeTensorException)


def step_bytes(plan: Plan, stage: Stage, student: Student) -> int | None:
    """Gradients, activations and images of one step where they are most; None if values decide it."""
    chunk = plan.experiment.chunk
    shown = plan.batch if chunk is None else min(plan.batch, 2 * chunk)  # two chunks are like any number
    real = _sample(plan, stage, student, shown)
    images = plan.batch * real.image[0].numel()
    mode = FakeTensorMode()
    hollow = _hollow(student, mode)
    batch = tree_map_only(Tensor, mode.from_tensor, real)
    try:
        with mode:
            taken = images + _learning(stage, hollow, batch, chunk)
            return taken if shown == plan.batch else taken + _comparing(stage, hollow, batch, plan.batch)
    except DEFIANT:
        return None


def _learning(stage: Stage, student: Student, batch: Batch, chunk: int | None) -> int:
    needs = stage.objective.needs
    teacher = torch.no_grad()(student) if "teacher" in needs else None  # a teacher computes the same
    with Ledger([*student.parameters(), *student.buffers(), batch.image]) as ledger:
        seen, taught = embed_both(student, teacher, batch, needs, chunk)
        stage.objective(Scene(seen, taught, batch.label)).total.backward()
    return ledger.peak


def _comparing(stage: Stage, student: Student, batch: Batch, count: int) -> int:
    """What the loss takes beside the towers: similarities grow with the square of the batch."""

    def grown(rows: Tensor | None) -> Tensor | None:
        return None if rows is None else rows.new_zeros(count, *rows.shape[1:]).requires_grad_()

    with torch.no_grad():
        few = student(batch, stage.objective.needs)
    features = None if few.features is None else tuple(grown(block) for block in few.features)
    many: Embedding = few._replace(
        image=grown(few.image), text=grown(few.text), scores=grown(few.scores), features=features
    )
    with Ledger(student.parameters()) as ledger:
        scene = Scene(
            many, many if "teacher" in stage.objective.needs else None, batch.image.new_zeros(count).long()
        )
        stage.objective(scene).total.backward()
    return ledger.peak


def _sample(plan: Plan, stage: Stage, student: Student, count: int) -> Batch:
    """The beginning of the first batch, with its own texts and blank images."""
    needs, experiment = stage.objective.needs, plan.experiment
    transform = Transform(student.preprocess)
    batches = Batches(
        plan.train, batch=plan.batch, seed=experiment.seed, transform=transform, templates=plan.templates
    )
    texts = batches.texts(batches.indices(0)[:count], 0)
    image = torch.zeros(len(texts), 3, transform.height, transform.width, dtype=torch.uint8)
    batch = Batch(image, label=torch.zeros(len(texts), dtype=torch.int64))
    if stage.probe is not None and "probe" in needs:
        draw = stage.probe.prepare(student, plan.train.classes)
        batch = batch._replace(probe=draw(np.random.default_rng(0), lambda: texts))
    if {"text", "anchors"} & needs:
        distinct, caption = np.unique(texts, return_inverse=True)
        batch = batch._replace(text=student.tokeniser(distinct.tolist()), caption=torch.from_numpy(caption))
    return batch._replace(anchors=batch._replace(probe=None)) if "anchors" in needs else batch


def _hollow(student: Student, mode: FakeTensorMode) -> Student:
    """A student of the same shapes whose weights hold nothing."""
    memo: dict[int, object] = {}
    for tensor in (*student.parameters(), *student.buffers()):
        memo[id(tensor)] = mode.from_tensor(tensor)
    return deepcopy(student, memo)
