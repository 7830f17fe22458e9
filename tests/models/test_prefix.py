"""Frozen first blocks are computed once for student and teacher, and nothing changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from closeness import length, same, smooth_steps
from torch import nn

from tracer.core.batch import Batch
from tracer.core.shadow import Shadow
from tracer.core.teachers import WMA
from tracer.methods.base import Stage
from tracer.methods.presets import composite
from tracer.models.lora import LoRA
from tracer.models.prefix import share_prefix
from tracer.models.student import Student, load
from tracer.models.trainable import towers
from tracer.parallel import World
from tracer.training.optim import Schedule, adamw
from tracer.training.step import State, step


def state(model: str, tune: str, lora: bool = False, chunk: int | None = None) -> State:
    student = load(model, seed=3)
    towers(tune)(student)
    if lora:
        LoRA(rank=2).attach(student, averaged=True, seed=0)
    with smooth_steps():
        optimiser = adamw(student, 0.1)
    return State(
        stage=Stage(composite("released", 0.9, "class"), teacher=WMA()),
        student=student.train(),
        shadow=Shadow(student, WMA(), steps=8),
        optimiser=optimiser,
        regularizer=None,
        schedule=Schedule(1e-3, 2, 8),
        world=World("cpu"),
        chunk=chunk,
    )


def batch(number: int, student: Student) -> Batch:
    generator = torch.Generator().manual_seed(number)
    image = torch.randint(0, 256, (4, 3, 28, 28), dtype=torch.uint8, generator=generator)
    return Batch(image, student.tokeniser(["one", "two", "three", "four"]), torch.arange(4))


def first_blocks(model: nn.Module) -> list[nn.Module]:
    assert isinstance(model, Student)
    return [next(iter(tower.blocks.values())) for tower in model.towers]


@pytest.mark.usefixtures("either_form")
@pytest.mark.parametrize(
    ("lora", "chunk"), [(False, None), (True, None), (False, 2)], ids=["blocks", "adapters", "chunks"]
)
def test_a_shared_prefix_changes_nothing(minute: str, lora: bool, chunk: int | None) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        _compare(minute, lora, chunk)
    finally:
        torch.set_default_dtype(torch.float32)


def _compare(minute: str, lora: bool, chunk: int | None) -> None:
    without, shared = state(minute, "last-1", lora, chunk), state(minute, "last-1", lora, chunk)
    assert shared.shadow is not None
    calls: list[object] = []
    for block in first_blocks(shared.shadow.model):
        block.get_submodule("mlp").register_forward_hook(lambda *inputs: calls.append(inputs))
    shared = replace(shared, prefix=share_prefix(shared.student, shared.shadow.model))
    for number in range(3):
        losses = [step(each, batch(number, each.student)).total for each in (without, shared)]
        same(*losses, length(shared.student), size=float(shared.student.scale.detach()))
    assert not calls  # the teacher's first blocks did not run
    shared.shadow(batch(0, shared.student))
    assert len(calls) == 2  # outside a step they do
    assert without.shadow is not None
    for one, two in ((without.student, shared.student), (without.shadow.model, shared.shadow.model)):
        same(one.state_dict(), two.state_dict(), length(one))


def test_a_prefix_is_shared_with_a_teacher_of_every_second_pair(minute: str) -> None:
    """Its rows of the student's images; texts of these pairs, which are others, it computes."""
    torch.set_default_dtype(torch.float64)
    try:
        without, shared = state(minute, "last-1"), state(minute, "last-1")
        assert shared.shadow is not None
        calls: list[object] = []
        for block in first_blocks(shared.shadow.model):
            block.get_submodule("mlp").register_forward_hook(lambda module, *_: calls.append(module))
        shared = replace(shared, prefix=share_prefix(shared.student, shared.shadow.model, 2))
        for number in range(3):
            losses = []
            for each in (without, shared):
                each.stage = replace(each.stage, distill_pairs=2)
                losses.append(step(each, batch(number, each.student)).total)
            same(*losses, length(shared.student), size=float(shared.student.scale.detach()))
        assert calls == [first_blocks(shared.shadow.model)[1].get_submodule("mlp")] * 3  # of texts alone
        assert without.shadow is not None
        for one, two in ((without.student, shared.student), (without.shadow.model, shared.shadow.model)):
            same(one.state_dict(), two.state_dict(), length(one))
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("tune", ["both", "image", "norms"])
def test_there_is_none_where_early_layers_train(minute: str, tune: str) -> None:
    each = state(minute, tune)
    assert each.shadow is not None
    assert share_prefix(each.student, each.shadow.model) is None  # pyright: ignore[reportArgumentType]
