"""How cost grows: a TRACER step with batch, captions and parameters, a zero-shot head with its classes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch

from studies.bench.steps import CLASSES, batch_of, state_of
from studies.bench.turns import Times, Turns
from tracer.methods.base import method
from tracer.models.prompts import templates
from tracer.models.student import load
from tracer.models.zero_shot import zero_shot
from tracer.training.step import step


def with_batch(model: str, counts: Sequence[int], turns: Turns) -> Times:
    """One TRACER step at each batch."""
    student = load(model)
    state = state_of(method("tracer").stages[0], student)
    batches = {str(count): batch_of(student, count) for count in counts}
    return turns({name: lambda batch=batch: step(state, batch) for name, batch in batches.items()})


def with_length(model: str, lengths: Sequence[int], count: int, turns: Turns) -> Times:
    """One TRACER step with captions of so many tokens, as far as the model reads."""
    student = load(model)
    state = state_of(method("tracer").stages[0], student)
    batch = batch_of(student, count)
    assert batch.text is not None
    start, end = batch.text[0, 0], batch.text.max()
    works, most = {}, student.tokeniser.tokeniser.context_length
    for length in sorted({min(length, most) for length in lengths}):
        tokens = torch.randint(1000, 2000, (count, length), generator=torch.Generator().manual_seed(length))
        tokens[:, 0], tokens[:, -1] = start, end
        works[str(length)] = partial(step, state, batch._replace(text=tokens))
    return turns(works)


def with_parameters(models: Sequence[str], count: int, turns: Turns) -> tuple[Times, dict[str, int]]:
    """One TRACER step of each model, and the parameters of each."""
    students = {name: load(name) for name in models}
    works = {}
    for name, student in students.items():
        state = state_of(method("tracer").stages[0], student)
        works[name] = partial(step, state, batch_of(student, count))
    sizes = {name: sum(p.numel() for p in student.parameters()) for name, student in students.items()}
    return turns(works), sizes


def with_classes(model: str, counts: Sequence[int], turns: Turns) -> Times:
    """A zero-shot head of so many classes, 80 prompts each."""
    student = load(model).eval()
    names = {
        count: [f"{name} number {i}" for i in range(count // 10) for name in CLASSES] for count in counts
    }
    return turns(
        {
            str(n): lambda names=some: zero_shot(student, names, templates("openai"))
            for n, some in names.items()
        },
        warmup=0,
    )
