"""Fisher merging: an average of two models in which each weight counts by its Fisher information."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tracer.core.batch import Batch
from tracer.core.weights import Weights
from tracer.merging.tpgm import class_logits
from tracer.models.student import Student

FLOOR = 1e-8


def fisher(start: Weights, end: Weights, alpha: float, f0: Weights, f1: Weights) -> Weights:
    """θ = (w₀ θ₀ + w₁ θ₁) / (w₀ + w₁), w₀ = (1−α) max(F₀, 1e-8), w₁ = α max(F₁, 1e-8), weight by weight.

    F is the diagonal of the Fisher information; weights without an entry count equally. α = 0 and 1 return `start`
    and `end` bit for bit. Reference: Matena and Raffel (arXiv 2111.09832).
    """
    merged = {}
    for name, origin in start.items():
        if not origin.is_floating_point():
            merged[name] = (origin if alpha == 0 else end[name]).clone()
            continue
        equal = torch.ones_like(origin)
        w0 = (1 - alpha) * f0.get(name, equal).clamp(min=FLOOR)
        w1 = alpha * f1.get(name, equal).clamp(min=FLOOR)
        merged[name] = torch.lerp(origin, end[name], (w1 / (w0 + w1)).to(origin.dtype))
    return merged


def fisher_information(
    student: Student,
    images: Float[Tensor, "n 3 h w"] | Int[Tensor, "n 3 h w"],
    prompts: Int[Tensor, "c l"],
    seed: int = 0,
) -> Weights:
    """diag F = mean_i (∂ log p(y_i | x_i))² with y_i sampled from the model's own prediction."""
    student.eval().requires_grad_(True)
    generator = torch.Generator().manual_seed(seed)
    parameters = dict(student.named_parameters())
    squares = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
    for image in images:
        log_p = class_logits(student, Batch(image[None], prompts)).log_softmax(dim=1)[0]
        label = torch.multinomial(log_p.detach().exp().cpu(), 1, generator=generator)
        gradients = torch.autograd.grad(log_p[int(label)], list(parameters.values()), allow_unused=True)
        for square, gradient in zip(squares.values(), gradients, strict=True):
            if gradient is not None:
                square.add_(gradient.square(), alpha=1 / len(images))
    return squares
