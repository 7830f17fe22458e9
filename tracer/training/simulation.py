"""Simulates the first step of a stage on fake tensors, which have shapes but no data, and counts their bytes."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from tracer.core.batch import Batch, Embedding, Scene
from tracer.data.loader import Batches
from tracer.data.transforms import Transform
from tracer.methods.base import Stage
from tracer.models.gradient_cache import embed_both
from tracer.models.prefix import share_prefix
from tracer.models.student import Student
from tracer.runs.plan import Plan
from tracer.training.setup import shares

# Raised by operations whose output depends on values, which fake tensors do not have.
VALUE_DEPENDENT = (DataDependentOutputException, DynamicOutputShapeException, UnsupportedFakeTensorException)


def step_bytes(plan: Plan, stage: Stage, student: Student) -> int | None:
    """Peak bytes of gradients, activations and images of one step; None if the model cannot be simulated."""
    chunk = plan.experiment.chunk
    k = stage.distill_pairs
    count = plan.batch if chunk is None else min(plan.batch, 2 * chunk * k)  # more chunks take no more memory
    sample = sample_batch(plan, stage, student, count)
    images = plan.batch * sample.image[0].numel()
    mode = FakeTensorMode()
    fake = _fake(student, mode)
    batch = tree_map_only(Tensor, mode.from_tensor, sample)
    # Before, because the number of distinct captions depends on values.
    shown = tree_map_only(Tensor, mode.from_tensor, sample.every(k)) if k > 1 else None
    try:
        with mode:
            size = images + _step_peak(stage, fake, batch, shown, chunk, sharing=shares(plan, stage))
            return size if count == plan.batch else size + _loss_peak(stage, fake, batch, plan.batch)
    except VALUE_DEPENDENT:
        return None


def _step_peak(
    stage: Stage, student: Student, batch: Batch, shown: Batch | None, chunk: int | None, sharing: bool
) -> int:
    """Peak bytes of a forward and backward pass; with `sharing`, a frozen prefix is computed once.

    The teacher is shown the pairs of `shown`, or all.
    """
    needs, weights = stage.objective.needs, [*student.parameters(), *student.buffers()]
    teacher, prefix = None, None
    if "teacher" in needs:
        copy = deepcopy(student, {id(tensor): tensor for tensor in weights}).eval()  # takes no memory here
        prefix = share_prefix(student, copy, stage.distill_pairs) if sharing else None
        teacher = torch.no_grad()(copy)
    images = [each.image for each in (batch, shown) if each is not None]
    with AllocationCounter([*weights, *images]) as counter:
        own, target = embed_both(student, teacher, batch, needs, chunk, prefix, shown)
        stage.objective(Scene(own, target, batch.label)).total.backward()
    return counter.peak


def _loss_peak(stage: Stage, student: Student, batch: Batch, count: int) -> int:
    """Peak bytes of the loss for `count` images; similarities grow with the square of the batch."""
    with torch.no_grad():
        small: Embedding = student(batch, stage.objective.needs)
    full = small.with_rows(lambda rows: rows.new_zeros(count, *rows.shape[1:]).requires_grad_())
    with AllocationCounter(student.parameters()) as counter:
        teacher = full.every(stage.distill_pairs) if "teacher" in stage.objective.needs else None
        scene = Scene(full, teacher, batch.image.new_zeros(count).long())
        stage.objective(scene).total.backward()
    return counter.peak


def sample_batch(plan: Plan, stage: Stage, student: Student, count: int) -> Batch:
    """The first `count` examples of the first batch, with their texts and blank images."""
    needs, experiment = stage.objective.needs, plan.experiment
    transform = Transform(student.preprocess_cfg)
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


class AllocationCounter(TorchDispatchMode):
    """A context that counts the bytes of tensors created inside: `current`, and their `peak`."""

    def __init__(self, excluded: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self.current = self.peak = 0
        self._storages = {tensor.untyped_storage()._cdata for tensor in excluded}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        outputs = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(outputs):
            if isinstance(tensor, Tensor):
                self._add(tensor)
        self.peak = max(self.peak, self.current)
        return outputs

    def _add(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()  # shared by views, so that bytes are counted once
        key, size = storage._cdata, storage.nbytes()
        if key not in self._storages:
            self._storages.add(key)
            self.current += size
            weakref.finalize(storage, self._remove, key, size).atexit = False  # pyrefly: ignore

    def _remove(self, key: int, size: int) -> None:
        self._storages.discard(key)
        self.current -= size


def _fake(student: Student, mode: FakeTensorMode) -> Student:
    """A copy of the student with fake tensors as weights."""
    memo: dict[int, object] = {}
    for tensor in (*student.parameters(), *student.buffers()):
        memo[id(tensor)] = mode.from_tensor(tensor)
    return deepcopy(student, memo)
