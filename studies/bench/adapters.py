"""Steps of students that are partly frozen, and of convolutional towers in either memory format."""

from __future__ import annotations

from dataclasses import replace

import torch

from studies.bench.plain import Plain
from studies.bench.steps import batch_of, captions, state_of
from studies.bench.timing import Timer, Times
from tracer.core.shadow import Shadow
from tracer.methods.base import method
from tracer.models.acceleration import class_token_only
from tracer.models.lora import LoRA
from tracer.models.open_clip_compat import open_clip
from tracer.models.prefix import share_prefix
from tracer.models.student import Student, load
from tracer.parallel.device import channels_last
from tracer.training.optim import adamw
from tracer.training.step import State, step


def adapted(model: str, rank: int = 8) -> State:
    """TRACER with LoRA-FA on every layer, as `--adapter lora` trains it."""
    state = state_of(method("flyp").stages[0], load(model))
    LoRA(rank).attach(state.student, averaged=True, seed=0)
    stage = method("tracer").stages[0]
    policy = stage.policy(1000)
    assert policy is not None
    shadow = Shadow(state.student, policy, steps=1000)
    return replace(state, stage=stage, shadow=shadow, optimiser=adamw(state.student, 0.1))


def adapters(model: str, count: int, timer: Timer) -> Times:
    """TRACER with adapters, against all weights and against released-style FLYP."""
    full, lora = state_of(method("tracer").stages[0], load(model)), adapted(model)
    batch = batch_of(full.student, count)
    plain = Plain(load(model).clip, open_clip.loss.ClipLoss())
    images = (batch.image.float() / 255 - full.student.mean) / full.student.std
    tokens = full.student.tokeniser.tokeniser(captions(count))
    return timer(
        {
            "plain FLYP": lambda: plain.flyp(images, tokens),
            "TRACER": lambda: step(full, batch),
            "TRACER with LoRA": lambda: step(lora, batch),
        }
    )


def own_share(model: str) -> float:
    """The teacher's own tensors under LoRA, as a share of the model."""
    state = adapted(model)
    assert state.shadow is not None
    own = sum(t.numel() for t in state.shadow.state_dict()["model"].values())
    return own / sum(p.numel() for p in load(model).parameters())


def peak(model: str, count: int) -> int:
    """Peak memory of TRACER with LoRA, in bytes."""
    from tracer.training.estimate import resident

    state = adapted(model)
    for _ in range(2):
        step(state, batch_of(state.student, count))
    return resident()


def last_blocks(model: str, count: int, blocks: int, timer: Timer) -> Times:
    """FLYP and TRACER of the last blocks, with the frozen prefix computed once or twice."""
    student = load(model)
    twice = state_of(method("tracer", tune=f"last-{blocks}").stages[0], student)
    alone = replace(twice, stage=method("flyp", tune=f"last-{blocks}").stages[0], shadow=None)
    batch = batch_of(student, count)
    other = state_of(method("tracer", tune=f"last-{blocks}").stages[0], load(model))
    assert other.shadow is not None
    once = replace(other, prefix=share_prefix(other.student, other.shadow.model))  # pyright: ignore[reportArgumentType]
    return timer(
        {
            "FLYP": lambda: step(alone, batch),
            "TRACER, prefix twice": lambda: step(twice, batch),
            "TRACER, prefix once": lambda: step(once, batch),
        }
    )


def convolutions(model: str, count: int, timer: Timer) -> tuple[Times, float]:
    """TRACER steps of a model, and passes through its convolutional tower alone, in both memory formats.

    "now" is channels last with a short attention pool where there is one, as runs train; the others have the whole
    pool. And the largest difference of image embeddings, now from channels first.
    """
    first, last = load(model), load(model)
    channels_last(last)
    batch = batch_of(first, count)
    states = [state_of(method("tracer").stages[0], each) for each in (first, last)]

    def train(state: State, short: bool) -> None:
        assert state.shadow is not None
        for each in (state.student, state.shadow.model):
            class_token_only(each, short)
        step(state, batch)

    def tower(student: Student, short: bool) -> None:
        class_token_only(student, short)
        student.embed_image(batch.image).sum().backward()

    with torch.no_grad():
        class_token_only(first, False)
        gap = (first.eval()(batch).image - last.eval()(batch).image).abs().max()
        for student in (first, last):
            student.train()
    works = {
        "channels first": lambda: train(states[0], False),
        "channels last": lambda: train(states[1], False),
        "now": lambda: train(states[1], True),
        "tower, channels first": lambda: tower(first, False),
        "tower, channels last": lambda: tower(last, False),
        "tower, now": lambda: tower(last, True),
    }
    return timer(works), float(gap)
