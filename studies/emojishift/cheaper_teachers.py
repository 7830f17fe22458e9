"""TRACER with a cheaper forward of its teacher, for the study of what that costs; the package does not have these.

A method of `CHEAPER` is TRACER but for the teacher's forward in training: its average, its weights and the student are
as always. `cheaper_teacher` makes the methods known, as plug-ins are, while a study runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import interpolate

from tracer.core.batch import Batch, Embedding, Scene
from tracer.core.objective import Objective, Term
from tracer.core.shadow import Shadow
from tracer.methods.base import Method, Recipe, methods
from tracer.models.student import Student
from tracer.training import setup

Forward = Callable[[Student, Batch, frozenset[str]], Embedding]
POSITIONS = "clip.visual.positional_embedding"


def part(share: float) -> Forward:
    """A random part of the pairs, drawn anew in every step; rows of the other pairs are zero."""

    def forward(model: Student, batch: Batch, needs: frozenset[str]) -> Embedding:
        assert batch.text is not None
        assert batch.caption is not None
        count = len(batch.image)
        rows = torch.randperm(count)[: round(share * count)]  # the step is seeded
        texts, caption = batch.caption[rows].unique(return_inverse=True)
        own = model(Batch(batch.image[rows], batch.text[texts], caption=caption), needs)
        image, text = own.image.new_zeros(2, count, own.image.shape[1])
        image[rows], text[rows] = own.image, own.text  # pyright: ignore[reportArgumentType]
        return own._replace(image=image, text=text)

    return forward


def resolution(share: float) -> Forward:
    """Images with a side of `share` of the model's, for which the positions of patches are interpolated."""

    def forward(model: Student, batch: Batch, needs: frozenset[str]) -> Embedding:
        pixels, positions = model.pixels(batch.image), model.get_parameter(POSITIONS)
        side = round((len(positions) - 1) ** 0.5)
        fewer = round(share * side)  # patches of a side
        size = fewer * pixels.shape[-1] // side
        grid = positions[1:].T.unflatten(1, (side, side))[None]
        grid = interpolate(grid, (fewer, fewer), mode="bicubic", antialias=True)[0].flatten(1).T
        small = interpolate(pixels, (size, size), mode="bicubic", antialias=True)
        changed = {POSITIONS: torch.cat([positions[:1], grid])}
        return functional_call(model, changed, (batch._replace(image=small), needs))

    return forward


def bf16(model: Student, batch: Batch, needs: frozenset[str]) -> Embedding:
    """The numbers of a forward in bf16, computed in fp32: weights and the output of every layer are rounded."""
    layers = [
        each
        for each in model.modules()
        if isinstance(each, nn.MultiheadAttention | nn.Linear | nn.Conv2d | nn.LayerNorm | nn.GELU)
    ]
    hooks = [each.register_forward_hook(_round_output) for each in layers]
    weights = {name: _rounded(p) for name, p in model.named_parameters() if "logit_scale" not in name}
    try:
        own: Embedding = functional_call(model, weights, (batch, needs))
    finally:
        for hook in hooks:
            hook.remove()
    assert own.text is not None
    return own._replace(image=_rounded(own.image), text=_rounded(own.text))


def _rounded(values: Tensor) -> Tensor:
    return values.bfloat16().to(values.dtype)


def _round_output(layer: nn.Module, inputs: Any, output: Any) -> Any:
    del layer, inputs
    return (_rounded(output[0]), *output[1:]) if isinstance(output, tuple) else _rounded(output)


CHEAPER: dict[str, Forward] = {
    "tracer_half_batch": part(1 / 2),
    "tracer_quarter_batch": part(1 / 4),
    "tracer_three_quarter_side": resolution(3 / 4),
    "tracer_half_side": resolution(1 / 2),
    "tracer_bf16": bf16,
}


class CheaperShadow(Shadow[Student]):
    """A teacher with another forward in training."""

    def __init__(self, model: Student, *rest: Any, forward: Forward, **options: Any) -> None:
        super().__init__(model, *rest, **options)
        self.forward = forward

    @torch.no_grad()
    def __call__(self, batch: Batch, needs: frozenset[str]) -> Embedding:
        return self.forward(self.model, batch, needs)


@contextmanager
def cheaper_teacher(name: str) -> Iterator[None]:
    """A context in which these methods are known, and new teachers have the forward of `name` if it is one."""
    shadow = partial(CheaperShadow, forward=CHEAPER[name]) if name in CHEAPER else Shadow
    with (
        patch.dict(methods(), {each: _recipe(each) for each in CHEAPER}),
        patch.object(setup, "Shadow", shadow),
    ):
        yield


def _recipe(name: str) -> Recipe:
    @wraps(methods()["tracer"])
    def recipe(**options: Any) -> Method:
        method = methods()["tracer"](**options)
        (stage,) = method.stages
        terms = ((w, _on_part(t) if "teacher" in t.needs else t) for w, t in stage.objective.weighted)
        return replace(method, stages=(replace(stage, minimise=Objective(tuple(terms))),), name=name)

    return recipe


def _on_part(term: Term) -> Term:
    """The term on the pairs that the teacher has seen: its means are over them, and its negatives are among them."""

    def formula(scene: Scene) -> Tensor:
        rows = scene.taught[1].image.any(dim=1)
        student, teacher = (_rows(each, rows) for each in scene.taught)
        label = None if scene.label is None else scene.label[rows]
        return term(scene._replace(student=student, teacher=teacher, label=label))

    return replace(term, formula=formula)


def _rows(embedding: Embedding, rows: Tensor) -> Embedding:
    assert embedding.text is not None
    return embedding._replace(image=embedding.image[rows], text=embedding.text[rows])
