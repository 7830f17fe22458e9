"""Training steps: ours against the plain ones, with and without a teacher."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from studies.bench.plain import Plain
from studies.bench.timing import Timer, Times
from tracer.core.batch import Batch, Scene
from tracer.core.shadow import Shadow
from tracer.methods.base import Stage, method
from tracer.models.acceleration import class_token_only
from tracer.models.gradient_cache import embed_both
from tracer.models.open_clip_compat import open_clip
from tracer.models.prompts import render, templates
from tracer.models.student import Student, load
from tracer.parallel import World
from tracer.training.optim import Schedule, adamw
from tracer.training.setup import fit
from tracer.training.step import State, step

CLASSES = (
    "dog",
    "cat",
    "red car",
    "house",
    "oak tree",
    "bicycle",
    "river",
    "bridge",
    "loaf of bread",
    "violin",
)


def pixels(student: Student, count: int) -> Tensor:
    """Random pixels at the model's input size."""
    size = student.preprocess_cfg["size"]
    height, width = size if isinstance(size, tuple | list) else (size, size)
    generator = torch.Generator().manual_seed(0)
    return torch.randint(256, (count, 3, height, width), dtype=torch.uint8, generator=generator)


def captions(count: int) -> list[str]:
    """Class names in OpenAI's prompts, a different prompt for each image."""
    prompts = templates("openai")
    return [render(prompts[7 * i % len(prompts)], CLASSES[i % len(CLASSES)]) for i in range(count)]


def batch_of(student: Student, count: int) -> Batch:
    """A batch as the loader makes it: uint8 pixels, each distinct caption once and at its own length."""
    texts, label = captions(count), torch.arange(count) % len(CLASSES)
    return Batch(pixels(student, count), student.tokeniser(texts), label, torch.arange(count))


def state_of(stage: Stage, student: Student, chunk: int | None = None) -> State:
    """The training state of a stage in a run of 1000 steps."""
    stage = fit(stage, student)
    stage.tune(student)
    class_token_only(student)
    policy = stage.policy(1000)
    return State(
        stage=stage,
        student=student.train(),
        shadow=Shadow(student, policy, steps=1000) if policy else None,
        optimiser=adamw(student, 0.1),
        regularizer=None,
        schedule=Schedule(1e-5, 1, 1000),
        world=World("cpu", "fp32"),
        chunk=chunk,
    )


def steps(model: str, count: int, timer: Timer) -> Times:
    """FLYP and TRACER, plain and ours; the two methods share one plain student and one of ours."""
    student = load(model)
    with_teacher = state_of(method("tracer").stages[0], student)
    alone = replace(with_teacher, stage=method("flyp").stages[0], shadow=None)
    batch = batch_of(student, count)
    plain = Plain(load(model).clip, open_clip.loss.ClipLoss())
    images = (batch.image.float() / 255 - student.mean) / student.std  # those recipes do this in the loader
    tokens = student.tokeniser.tokeniser(captions(count))
    return timer(
        {
            "plain FLYP": lambda: plain.flyp(images, tokens),
            "our FLYP": lambda: step(alone, batch),
            "plain TRACER": lambda: plain.tracer(images, tokens),
            "our TRACER": lambda: step(with_teacher, batch),
        },
    )


def overhead(model: str, count: int, timer: Timer) -> Times:
    """Our FLYP and TRACER alone, for models of which two do not fit in memory."""
    student = load(model)
    with_teacher = state_of(method("tracer").stages[0], student)
    alone = replace(with_teacher, stage=method("flyp").stages[0], shadow=None)
    batch = batch_of(student, count)
    return timer({"our FLYP": lambda: step(alone, batch), "our TRACER": lambda: step(with_teacher, batch)})


def chunks(model: str, count: int, chunk: int, timer: Timer) -> Times:
    """A step on a whole batch and in chunks."""
    student = load(model)
    whole = state_of(method("tracer").stages[0], student)
    batch = batch_of(student, count)
    return timer(
        {
            "at once": lambda: step(whole, batch),
            "in chunks": lambda: step(replace(whole, chunk=chunk), batch),
        },
    )


def chunk_gap(model: str, count: int, chunk: int) -> float:
    """The largest difference between TRACER's gradients in chunks and at once, over the largest gradient."""
    student = load(model)
    state = state_of(method("tracer").stages[0], student)
    batch, needs, objective = batch_of(student, count), state.stage.objective.needs, state.stage.objective
    gradients = []
    for size in (None, chunk):
        student.zero_grad()
        embedded, teacher = embed_both(student, state.shadow, batch, needs, size)
        objective(Scene(embedded, teacher, batch.label)).total.backward()
        gradients.append(torch.cat([p.grad.flatten() for p in student.parameters() if p.grad is not None]))
    whole, parts = gradients
    return float((whole - parts).abs().max() / whole.abs().max())


def teacher_update(model: str, timer: Timer) -> Times:
    """Our teacher update, an update in a loop, and as lower bound one in-place lerp of a flat tensor of that size."""
    student = load(model)
    policy = method("tracer").stages[0].policy(10**6)
    assert policy is not None
    shadow, plain = Shadow(student, policy, steps=10**6), Plain(student.clip, None)
    size = sum(tensor.numel() for tensor in student.parameters())
    flat, other = torch.zeros(size), torch.ones(size)
    return timer(
        {
            "a flat lerp": lambda: flat.lerp_(other, 0.01),
            "our update": lambda: shadow.follow(student),
            "a loop": lambda: plain.follow(0.01),
        },
    )
