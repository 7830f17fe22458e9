"""A batch in chunks is the batch: same loss, same gradients, for every method there is."""

from __future__ import annotations

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import torch
from closeness import length, same

from tracer.core.batch import Batch, Scene
from tracer.core.errors import UserError
from tracer.core.kernels import Beta
from tracer.core.objective import Loss
from tracer.core.shadow import Shadow
from tracer.core.teachers import WMA
from tracer.core.terms import contrastive, feature
from tracer.methods.base import Stage, method, methods
from tracer.models.acceleration import save_memory
from tracer.models.gradient_cache import chunks, embed, embed_both, refuse_batch_statistics
from tracer.models.student import Head, Student, load
from tracer.models.trainable import ImageTower

CLASSES = ("dog", "red car", "small house by the sea")
STAGES = [
    (name, index)
    for name in methods()
    for index, stage in enumerate(method(name).stages)
    if stage.objective.weighted and stage.share
]


def batch_for(stage: Stage, student: Student, count: int = 7) -> Batch:
    rng = torch.Generator().manual_seed(5)

    def drawn(high: int) -> torch.Tensor:
        return torch.randint(high, (count,), generator=rng)

    def images() -> torch.Tensor:
        return torch.randint(256, (count, 3, 28, 28), dtype=torch.uint8, generator=rng)

    texts = [f"a {kind} of a {name}." for kind in ("photo", "sketch") for name in CLASSES][:5]
    tokens = student.tokeniser(texts)
    batch = Batch(images(), tokens, drawn(len(CLASSES)), drawn(len(texts)))
    spoken = [texts[i] for i in batch.caption.tolist()]  # pyright: ignore[reportOptionalMemberAccess]
    if stage.probe is not None:
        draw = stage.probe.prepare(student, CLASSES)
        probe = draw(np.random.default_rng(0), lambda: spoken)
        batch = batch._replace(probe=probe.to(student.mean.dtype) if probe.is_floating_point() else probe)
    if "anchors" in stage.objective.needs:
        batch = batch._replace(anchors=Batch(images(), tokens, drawn(3), drawn(len(texts))))
    return batch


@cache
def _tiny() -> Student:
    return load("tiny-28", seed=1)


def prepared(stage: Stage, dtype: torch.dtype) -> tuple[Student, Shadow | None]:
    """A student in the middle of training, some way from its teacher."""
    student = deepcopy(_tiny())
    if "scores" in stage.objective.needs:
        student.head = Head(torch.randn(len(CLASSES), 128, generator=torch.Generator().manual_seed(2)))
    stage.tune(student)
    student.train().to(dtype)
    policy = stage.policy(10)
    shadow = Shadow(student, policy, steps=10) if policy else None
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in student.parameters():
            if parameter.requires_grad:
                parameter += 0.02 * torch.randn(parameter.shape, generator=generator).to(dtype)
    return student, shadow


def learned(
    stage: Stage, student: Student, shadow: Shadow | None, batch: Batch, chunk: int | None
) -> tuple[Loss, dict[str, torch.Tensor]]:
    student.zero_grad(set_to_none=True)
    needs = stage.objective.needs
    seen, taught = embed_both(student, shadow if "teacher" in needs else None, batch, needs, chunk)
    loss = stage.objective(Scene(seen, taught, batch.label, 0.5))
    loss.total.backward()
    return loss, {name: p.grad for name, p in student.named_parameters() if p.grad is not None}


@pytest.mark.parametrize(("name", "index"), STAGES)
def test_chunks_leave_every_gradient_as_it_is(name: str, index: int) -> None:
    equal_in_chunks(method(name).stages[index], torch.float64)


@pytest.mark.parametrize("name", ["tracer", "lpft"])
def test_chunks_leave_every_gradient_as_it_is_in_single_precision(name: str) -> None:
    equal_in_chunks(method(name).stages[-1], torch.float32)


def equal_in_chunks(stage: Stage, dtype: torch.dtype) -> None:
    student, shadow = prepared(stage, dtype)
    batch = batch_for(stage, student)
    plain, expected = learned(stage, student, shadow, batch, None)
    loss, found = learned(stage, student, shadow, batch, 3)
    same(loss.total, plain.total, length(student), size=float(student.scale.detach()))
    same(found, expected, length(student))


@pytest.mark.parametrize(("name", "asked"), [("tracer", "class"), ("arf", "pair")])
def test_chunks_leave_the_gradients_of_sigmoid_losses_as_they_are(name: str, asked: str) -> None:
    stage = method(name, targets=asked).stages[0]
    student, _ = prepared(stage, torch.float64)
    student.clip.logit_bias = torch.nn.Parameter(torch.tensor(-10.0, dtype=torch.float64))
    policy = stage.policy(10)
    shadow = Shadow(student, policy, steps=10) if policy else None
    student.clip.logit_bias.data += 0.5
    batch = batch_for(stage, student)
    plain, expected = learned(stage, student, shadow, batch, None)
    loss, found = learned(stage, student, shadow, batch, 3)
    assert "clip.logit_bias" in expected
    same(loss.total, plain.total, length(student), size=float(student.scale.detach()))
    same(found, expected, length(student))


@pytest.mark.parametrize("chunk", [1, 2, 6, 7, 100])
def test_any_chunk_gives_the_same_embedding(student: Student, chunk: int) -> None:
    stage = method("tracer").stages[0]
    batch, needs = batch_for(stage, student), stage.objective.needs
    plain, chunked = student(batch, needs), embed(student, batch, needs, chunk)
    for name in ("image", "text", "scale"):
        same(getattr(plain, name), getattr(chunked, name), length(student))


def test_pieces_hold_every_row_once_and_no_more_than_the_chunk() -> None:
    image, text = torch.arange(10).view(10, 1, 1, 1).expand(10, 3, 2, 2), torch.arange(3).view(3, 1)
    found = chunks(Batch(image, text), 3)
    assert [len(piece.image) for piece in found] == [3, 3, 2, 2]
    assert torch.equal(torch.cat([piece.image for piece in found]), image)
    assert torch.equal(torch.cat([piece.text for piece in found if piece.text is not None]), text)
    assert all(piece.text is None or len(piece.text) <= 3 for piece in found)


def test_a_rerun_draws_the_random_numbers_of_the_first_run() -> None:
    """Patch dropout keeps half of the patches: another half in the second run would be another gradient."""
    stage = Stage(contrastive())
    student, _ = prepared(stage, torch.float64)
    student.clip.visual.patch_dropout = open_clip_dropout()
    batch = batch_for(stage, student)
    torch.manual_seed(0)
    with torch.no_grad():
        seen = embed(student, batch, stage.objective.needs, 3)
    expected = stage.objective(Scene(seen, None, batch.label)).total
    torch.manual_seed(0)
    loss, gradients = learned(stage, student, None, batch, 3)
    assert torch.equal(loss.total, expected)
    name, weight = "clip.visual.proj", student.clip.visual.proj
    step = 1e-6 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    values = []
    for sign in (1, -1):
        torch.manual_seed(0)
        moved = deepcopy(student)
        moved.clip.visual.proj.data += sign * step
        values.append(learned(stage, moved, None, batch, 3)[0].total.detach())
    slope = (values[0] - values[1]) / 2
    assert torch.allclose((gradients[name] * step).sum(), slope, rtol=1e-6)


def open_clip_dropout() -> torch.nn.Module:
    from open_clip.transformer import PatchDropout

    return PatchDropout(0.5)


def test_a_still_text_tower_is_asked_once() -> None:
    stage = Stage(contrastive() + feature(), teacher=WMA(Beta(0.5)), tune=ImageTower())
    student, shadow = prepared(stage, torch.float32)
    assert shadow is not None
    batch, needs = batch_for(stage, student), stage.objective.needs
    shadow.follow(student)
    seen, shared = embed_both(student, shadow, batch, needs)
    computed = embed(shadow, batch, needs)
    assert shared is not None
    assert shared.text is seen.text
    assert torch.equal(shared.text, computed.text)  # pyright: ignore[reportArgumentType]
    assert torch.equal(shared.image, computed.image)
    student.requires_grad_(True)
    seen, apart = embed_both(student, shadow, batch, needs)
    assert apart is not None
    assert apart.text is not seen.text


@pytest.mark.parametrize("chunk", [None, 3])
def test_checkpointing_leaves_every_gradient_as_it_is(chunk: int | None) -> None:
    stage = method("tracer").stages[0]
    student, shadow = prepared(stage, torch.float64)
    batch = batch_for(stage, student)
    _, expected = learned(stage, student, shadow, batch, None)
    save_memory(student, chunk=chunk, checkpointing=True)
    _, found = learned(stage, student, shadow, batch, chunk)
    same(found, expected, length(student))


def test_batch_statistics_are_refused_unless_they_stand_still() -> None:
    student = load("RN50", seed=0).train()
    with pytest.raises(UserError, match="BatchNorm"):
        refuse_batch_statistics(student)
    with pytest.raises(UserError, match="recompute"):
        save_memory(student, checkpointing=True)
    student.frozen_statistics = True
    refuse_batch_statistics(student.train())
