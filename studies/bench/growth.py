"""How cost grows: a TRACER step with batch, caption length and parameters, a zero-shot head with its classes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch

from studies.bench.steps import CLASSES, batch_of, state_of
from studies.bench.timing import Timer, Times
from tracer.methods.base import method
from tracer.models.prompts import templates
from tracer.models.student import load
from tracer.models.zero_shot import zero_shot
from tracer.training.step import step


def with_batch(model: str, counts: Sequence[int], timer: Timer) -> Times:
    """One TRACER step at each batch size."""
    student = load(model)
    state = state_of(method("tracer").stages[0], student)
    batches = {str(count): batch_of(student, count) for count in counts}
    return timer({name: lambda batch=batch: step(state, batch) for name, batch in batches.items()})


def with_length(model: str, lengths: Sequence[int], count: int, timer: Timer) -> Times:
    """One TRACER step with captions of each length in tokens, up to the model's context length."""
    student = load(model)
    state = state_of(method("tracer").stages[0], student)
    batch = batch_of(student, count)
    assert batch.text is not None
    start, end = batch.text[0, 0], batch.text.max()
    works, longest = {}, student.tokeniser.tokeniser.context_length
    for length in sorted({min(length, longest) for length in lengths}):
        tokens = torch.randint(1000, 2000, (count, length), generator=torch.Generator().manual_seed(length))
        tokens[:, 0], tokens[:, -1] = start, end
        works[str(length)] = partial(step, state, batch._replace(text=tokens))
    return timer(works)


def with_parameters(models: Sequence[str], count: int, timer: Timer) -> tuple[Times, dict[str, int]]:
    """One TRACER step of each model, and their numbers of parameters."""
    students = {name: load(name) for name in models}
    works = {}
    for name, student in students.items():
        state = state_of(method("tracer").stages[0], student)
        works[name] = partial(step, state, batch_of(student, count))
    sizes = {name: sum(p.numel() for p in student.parameters()) for name, student in students.items()}
    return timer(works), sizes


def with_classes(model: str, counts: Sequence[int], timer: Timer) -> Times:
    """A zero-shot head with each number of classes, 80 prompts each."""
    student = load(model).eval()
    names = {
        count: [f"{name} number {i}" for i in range(count // 10) for name in CLASSES] for count in counts
    }
    return timer(
        {
            str(n): lambda names=some: zero_shot(student, names, templates("openai"))
            for n, some in names.items()
        },
        warmup=0,
    )
