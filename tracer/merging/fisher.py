"""Fisher merging: each weight is taken from the model that is surer of it."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tracer.core.batch import Batch
from tracer.core.weights import Weights
from tracer.merging.classes import class_logits
from tracer.models.student import Student

FLOOR = 1e-8


def fisher(start: Weights, end: Weights, alpha: float, known: Weights, learned: Weights) -> Weights:
    """θ = (w₀ θ₀ + w₁ θ₁) / (w₀ + w₁), w₀ = (1−α) max(F₀, 1e-8), w₁ = α max(F₁, 1e-8), weight by weight.

    F is a diagonal of the Fisher information; weights that have none count alike. 0 and 1 return the ends bit for
    bit. Reference: Matena and Raffel (arXiv 2111.09832).
    """
    merged = {}
    for name, origin in start.items():
        if not origin.is_floating_point():
            merged[name] = (origin if alpha == 0 else end[name]).clone()
            continue
        even = torch.ones_like(origin)
        stay = (1 - alpha) * known.get(name, even).clamp(min=FLOOR)
        go = alpha * learned.get(name, even).clamp(min=FLOOR)
        merged[name] = torch.lerp(origin, end[name], (go / (stay + go)).to(origin.dtype))
    return merged


def information(
    student: Student,
    images: Float[Tensor, "n 3 h w"] | Int[Tensor, "n 3 h w"],
    prompts: Int[Tensor, "c l"],
    seed: int = 0,
) -> Weights:
    """diag F = mean_i (∂ log p(y_i | x_i))², y_i drawn from the model's own prediction, one image at a time."""
    student.eval().requires_grad_(True)
    generator = torch.Generator().manual_seed(seed)
    parameters = dict(student.named_parameters())
    squares = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
    for image in images:
        guess = class_logits(student, Batch(image[None], prompts)).log_softmax(dim=1)[0]
        label = torch.multinomial(guess.detach().exp().cpu(), 1, generator=generator)
        gradients = torch.autograd.grad(guess[int(label)], list(parameters.values()), allow_unused=True)
        for square, gradient in zip(squares.values(), gradients, strict=True):
            if gradient is not None:
                square.add_(gradient.square(), alpha=1 / len(images))
    return squares
