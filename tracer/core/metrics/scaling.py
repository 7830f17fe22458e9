"""Temperature scaling: the one number that makes a model's confidence honest on held-out data."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tracer.core.metrics.metric import ROWS, check_predictions

COLDEST, HOTTEST = 1e-3, 1e3


def temperature(logits: Float[Tensor, "n k"], label: Int[Tensor, " n"]) -> float:
    """The T > 0 that minimises NLL(logits / T). Reference: Guo et al. 2017 (arXiv 1706.04599).

    With β = 1/T the loss mean[log Σ exp(β z) − β z_y] is convex, so its slope mean[E_p z − z_y] has one root,
    found by Newton steps in log β inside a bracket that halves when a step leaves it. Where the data ask
    for no finite T (everything right, or worse than chance) the end of [0.001, 1000] is returned; where the
    logits say nothing at all, 1.
    """
    check_predictions(logits, label)
    label = label.to(logits.device, torch.int64)
    low, high = -math.log(HOTTEST), -math.log(COLDEST)
    hot, cold = slope(logits, label, low)[0], slope(logits, label, high)[0]
    if hot >= 0 or cold <= 0:
        return 1.0 if hot >= 0 >= cold else HOTTEST if hot >= 0 else COLDEST
    at = 0.0
    for _ in range(100):
        value, curvature = slope(logits, label, at)
        low, high = (at, high) if value < 0 else (low, at)
        step = at - value / curvature if curvature > 0 else math.inf
        following = step if low < step < high else (low + high) / 2
        if abs(following - at) < 1e-10:
            break
        at = following
    return math.exp(-at)


def slope(logits: Float[Tensor, "n k"], label: Int[Tensor, " n"], log_beta: float) -> tuple[float, float]:
    """d NLL/dβ at β = exp(log_beta), and its derivative by log β: β times the variance of z under p."""
    beta = math.exp(log_beta)
    first, second = 0.0, 0.0
    for rows, target in zip(logits.split(ROWS), label.split(ROWS), strict=True):
        z = rows.double() - rows.double().gather(1, target[:, None])  # the label's logit is the origin
        p = (beta * z).softmax(dim=1)
        mean = (p * z).sum(dim=1, keepdim=True)
        first += float(mean.sum())
        second += float((p * (z - mean).square()).sum())
    return first / len(logits), beta * second / len(logits)
