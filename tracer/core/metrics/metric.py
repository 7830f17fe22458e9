"""A metric in two parts: a summary of a few numbers per sample, and a score over all summaries.

The bootstrap resamples the summaries instead of the logits, and this is exact: the score of the resampled
summaries is the metric of the resampled data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Concatenate, Generic, Literal, ParamSpec

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tracer.core.errors import UserError

Options = ParamSpec("Options")
Summary = Callable[[Tensor, Tensor], Tensor]  # float64 logits [n, k] and label [n] to [n, c], row by row

ROWS = 4096  # rows of logits converted to float64 at a time, to bound memory


@dataclass(frozen=True)
class Metric(Generic[Options]):
    """A metric of predictions. Call it with logits and labels, or pass it to `bootstrap` and `paired`."""

    name: str
    summary: Summary
    score: Callable[Concatenate[Tensor, Options], Tensor]  # summaries [*m, n, c] to values [*m]
    better: Literal["higher", "lower"]
    percent: bool = False  # shown as a percentage in tables
    ordered: bool = False  # depends on the order of the samples
    least: int = 1  # classes below which it is the same of every model

    @property
    def ceiling(self) -> float:
        """The upper bound of the metric; the lower bound of every metric is 0."""
        return 1.0 if self.percent else math.inf

    def __call__(
        self,
        logits: Float[Tensor, "n k"],
        label: Int[Tensor, " n"],
        *args: Options.args,
        **kwargs: Options.kwargs,
    ) -> float:
        return float(self.score(self.summaries(logits, label), *args, **kwargs))

    def summaries(self, logits: Float[Tensor, "n k"], label: Int[Tensor, " n"]) -> Float[Tensor, "n c"]:
        """The summary of each sample, in float64 on the CPU. Raises if logits or labels are invalid."""
        check_predictions(logits, label)
        label = label.to(logits.device, torch.int64)
        parts = zip(logits.split(ROWS), label.split(ROWS), strict=True)
        return torch.cat([self.summary(rows.double(), target).double().cpu() for rows, target in parts])


def metric(
    of: Summary,
    better: Literal["higher", "lower"],
    percent: bool = False,
    ordered: bool = False,
    least: int = 1,
) -> Callable[[Callable[Concatenate[Tensor, Options], Tensor]], Metric[Options]]:
    """Decorate a score over the summaries `of` into a Metric with the name of the function."""

    def wrap(score: Callable[Concatenate[Tensor, Options], Tensor]) -> Metric[Options]:
        return Metric(getattr(score, "__name__", "metric"), of, score, better, percent, ordered, least)

    return wrap


def check_logits(logits: Float[Tensor, "n k"]) -> None:
    """Raise if logits are empty, not finite, or of lower precision than float32."""
    if logits.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"logits must be float32 or float64, not {logits.dtype}: precision is already lost")
    if math.prod(logits.shape) == 0:
        raise UserError(f"nothing to measure: the logits have shape {tuple(logits.shape)}")
    finite = logits.isfinite().all(dim=1)
    if not finite.all():
        rows = (~finite).nonzero().flatten()
        raise UserError(
            f"{len(rows)} of {len(logits)} rows of logits hold NaN or infinity (e.g. row {int(rows[0])}): "
            "the model has diverged, or columns were masked with −inf instead of being left out"
        )


def check_predictions(logits: Float[Tensor, "n k"], label: Int[Tensor, " n"]) -> None:
    """Raise if logits are invalid or labels do not match them."""
    if logits.ndim != 2 or label.shape != logits.shape[:1]:
        raise ValueError(
            f"logits [n, k] and label [n] expected, not {list(logits.shape)} and {list(label.shape)}"
        )
    check_logits(logits)
    outside = ((label < 0) | (label >= logits.shape[1])).nonzero().flatten()
    if len(outside):
        row = int(outside[0])
        raise UserError(
            f"label {int(label[row])} in row {row} is outside the {logits.shape[1]} classes "
            f"0…{logits.shape[1] - 1} ({len(outside)} such rows of {len(label)})"
        )


def positive(name: str, value: int) -> int:
    """`value`; raises ValueError if it is below 1."""
    if value < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")
    return value
