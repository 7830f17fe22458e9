"""Retention: how close the predictions of two models are."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from tracer.core.metrics.metric import ROWS, check_logits


def agreement(logits_a: Float[Tensor, "n k"], logits_b: Float[Tensor, "n k"]) -> float:
    """Share of samples for which both models choose the same class."""
    check_pair(logits_a, logits_b)
    return float((logits_a.argmax(dim=1) == logits_b.argmax(dim=1)).double().mean())


def kl(logits_a: Float[Tensor, "n k"], logits_b: Float[Tensor, "n k"]) -> float:
    """Mean KL(p_a ‖ p_b) = Σ_k p_a (log p_a − log p_b), in nats. For retention, a is the pretrained model."""
    check_pair(logits_a, logits_b)
    total = 0.0
    for rows_a, rows_b in zip(logits_a.split(ROWS), logits_b.split(ROWS), strict=True):
        log_a, log_b = rows_a.double().log_softmax(dim=1), rows_b.double().log_softmax(dim=1)
        total += float((log_a.exp() * (log_a - log_b)).sum())
    return max(0.0, total / len(logits_a))  # rounding can give −1e−17 for equal predictions


def check_pair(logits_a: Float[Tensor, "n k"], logits_b: Float[Tensor, "n k"]) -> None:
    """Raise if the two have different shapes or are not valid logits."""
    if logits_a.shape != logits_b.shape:
        raise ValueError(f"predictions of one shape expected, not {logits_a.shape} and {logits_b.shape}")
    check_logits(logits_a)
    check_logits(logits_b)
