"""Classification scores: accuracy, top-5, macro-F1, NLL and Brier score."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import nll_loss, one_hot

from tracer.core.metrics.metric import metric


def rank(logits: Float[Tensor, "n k"], label: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
    """The number of classes ranked before the label: larger logits, and equal logits of a smaller index."""
    own = logits.gather(1, label[:, None])
    before = torch.arange(logits.shape[1], device=logits.device) < label[:, None]
    return ((logits > own) | ((logits == own) & before)).sum(dim=1)


def label_rank(logits: Float[Tensor, "n k"], label: Int[Tensor, " n"]) -> Float[Tensor, "n 1"]:
    """The rank of the label among each sample's logits; 0 is the largest."""
    return rank(logits, label).double()[:, None]


def choice(logits: Float[Tensor, "n k"], label: Int[Tensor, " n"]) -> Float[Tensor, "n 2"]:
    """The predicted class (the first of equal logits) and the label."""
    return torch.stack([logits.argmax(dim=1), label], dim=1).double()


def surprise(logits: Float[Tensor, "n k"], label: Int[Tensor, " n"]) -> Float[Tensor, "n 1"]:
    """−log p(label)."""
    return nll_loss(logits.log_softmax(dim=1), label, reduction="none")[:, None]


def squared_error(logits: Float[Tensor, "n k"], label: Int[Tensor, " n"]) -> Float[Tensor, "n 1"]:
    """Squared distance of the probabilities from the one-hot label."""
    target = one_hot(label, logits.shape[1])
    return (logits.softmax(dim=1) - target).square().sum(dim=1, keepdim=True)


@metric(of=label_rank, better="higher", percent=True)
def accuracy(ranks: Float[Tensor, "*m n 1"]) -> Float[Tensor, "*m"]:
    """Share of samples whose largest logit is the label's; of equal logits the first class is predicted."""
    return (ranks[..., 0] == 0).double().mean(dim=-1)


@metric(of=label_rank, better="higher", percent=True, least=6)
def top5(ranks: Float[Tensor, "*m n 1"]) -> Float[Tensor, "*m"]:
    """Share of samples whose label is among the five largest logits."""
    return (ranks[..., 0] < 5).double().mean(dim=-1)


@metric(of=choice, better="higher", percent=True)
def macro_f1(choices: Float[Tensor, "*m n 2"]) -> Float[Tensor, "*m"]:
    """Mean over the classes that occur of F1_c = 2 TP_c / (predicted_c + actual_c).

    A class without any sample has no recall and is left out, as WILDS does for iWildCam (arXiv 2012.07421).
    """
    predicted, actual = choices.long().unbind(dim=-1)
    empty = torch.zeros(*predicted.shape[:-1], int(choices.max()) + 1, dtype=torch.float64)
    ones = torch.ones_like(predicted, dtype=torch.float64)
    hit = empty.scatter_add(-1, actual, (predicted == actual).double())
    present = empty.scatter_add(-1, actual, ones)
    f1 = 2 * hit / (empty.scatter_add(-1, predicted, ones) + present).clamp(min=1)
    return f1.sum(dim=-1) / (present > 0).sum(dim=-1)


@metric(of=surprise, better="lower")
def nll(losses: Float[Tensor, "*m n 1"]) -> Float[Tensor, "*m"]:
    """Mean of −log p(label), in nats."""
    return losses[..., 0].mean(dim=-1)


@metric(of=squared_error, better="lower")
def brier(errors: Float[Tensor, "*m n 1"]) -> Float[Tensor, "*m"]:
    """Mean of Σ_k (p_k − y_k)² over all classes: 0 is perfect, 2 is confidently wrong (Brier, 1950)."""
    return errors[..., 0].mean(dim=-1)
