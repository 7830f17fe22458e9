"""Logistic regression solved to its optimum: a linear probe without learning rate and seed."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

TOLERANCE = 1e-9


def logistic(
    features: Float[Tensor, "n d"], label: Int[Tensor, " n"], classes: int, l2: float, iterations: int = 1000
) -> tuple[Float[Tensor, "c d"], Float[Tensor, " c"]]:
    """The W and b that minimise mean_i CE(W f_i + b, y_i) + (l2/2)‖W‖², by L-BFGS in float64 from zero."""
    if l2 < 0:
        raise ValueError(f"an l2 penalty is not negative: {l2}")
    features, label = features.detach().double().cpu(), label.cpu()
    weight = torch.zeros(classes, features.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(classes, dtype=torch.float64, requires_grad=True)
    solver = torch.optim.LBFGS(
        [weight, bias],
        max_iter=iterations,
        history_size=20,
        tolerance_grad=TOLERANCE,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )

    def loss() -> Tensor:
        solver.zero_grad()
        value = cross_entropy(features @ weight.T + bias, label) + l2 / 2 * weight.square().sum()
        value.backward()
        return value

    with torch.enable_grad():
        solver.step(loss)
    return weight.detach(), bias.detach()
