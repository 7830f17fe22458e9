"""Temperature scaling: calibrate a model on held-out data by one number."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tracer.core.metrics.metric import ROWS, check_predictions

LOWEST, HIGHEST = 1e-3, 1e3


def temperature(logits: Float[Tensor, "n k"], label: Int[Tensor, " n"]) -> float:
    """The T > 0 that minimises NLL(logits / T). Reference: Guo et al. 2017 (arXiv 1706.04599).

    With β = 1/T the loss mean[log Σ exp(β z) − β z_y] is convex, so its slope mean[E_p z − z_y] has one root,
    found by Newton's method in log β, with bisection when a step leaves the bracket. If there is no finite
    minimum (all predictions correct, or worse than chance), the bound of [0.001, 1000] is returned; if the loss
    does not depend on T, 1.
    """
    check_predictions(logits, label)
    label = label.to(logits.device, torch.int64)
    low, high = -math.log(HIGHEST), -math.log(LOWEST)
    at_low, at_high = slope(logits, label, low)[0], slope(logits, label, high)[0]
    if at_low >= 0 or at_high <= 0:
        return 1.0 if at_low >= 0 >= at_high else HIGHEST if at_low >= 0 else LOWEST
    log_beta = 0.0
    for _ in range(100):
        value, curvature = slope(logits, label, log_beta)
        low, high = (log_beta, high) if value < 0 else (low, log_beta)
        newton = log_beta - value / curvature if curvature > 0 else math.inf
        following = newton if low < newton < high else (low + high) / 2
        if abs(following - log_beta) < 1e-10:
            break
        log_beta = following
    return math.exp(-log_beta)


def slope(logits: Float[Tensor, "n k"], label: Int[Tensor, " n"], log_beta: float) -> tuple[float, float]:
    """d NLL/dβ at β = exp(log_beta), and its derivative with respect to log β: β times the variance of z under p."""
    beta = math.exp(log_beta)
    first, second = 0.0, 0.0
    for rows, target in zip(logits.split(ROWS), label.split(ROWS), strict=True):
        z = rows.double() - rows.double().gather(1, target[:, None])  # relative to the label's logit
        p = (beta * z).softmax(dim=1)
        mean = (p * z).sum(dim=1, keepdim=True)
        first += float(mean.sum())
        second += float((p * (z - mean).square()).sum())
    return first / len(logits), beta * second / len(logits)
