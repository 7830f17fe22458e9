"""What a metric is: a few numbers kept of each sample, and one number made of them.

The bootstrap resamples the few numbers and never touches the logits again, yet stays exact: the score of the
resampled summaries is the metric of the resampled data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Concatenate, Generic, Literal, ParamSpec

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tracer.core.errors import UserError

Options = ParamSpec("Options")
Summary = Callable[[Tensor, Tensor], Tensor]  # float64 logits [n, k] and label [n] to [n, c], row by row

ROWS = 4096  # logits are read in float64 this many rows at a time, to bound memory


@dataclass(frozen=True)
class Metric(Generic[Options]):
    """A measure of predictions. Call it with logits and labels, or hand it to `bootstrap` and `paired`."""

    name: str
    summary: Summary
    score: Callable[Concatenate[Tensor, Options], Tensor]  # summaries [*m, n, c] to values [*m]
    better: Literal["higher", "lower"]
    about: str = ""
    percent: bool = False  # shown as a percentage in tables
    ordered: bool = False  # depends on the order of the samples

    @property
    def ceiling(self) -> float:
        """No value lies above it; all metrics are at least 0."""
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
        """What the score needs to know of each sample, in float64 on the CPU."""
        check_predictions(logits, label)
        label = label.to(logits.device, torch.int64)
        parts = zip(logits.split(ROWS), label.split(ROWS), strict=True)
        return torch.cat([self.summary(rows.double(), target).double().cpu() for rows, target in parts])

    def fixed(self, name: str, *args: Options.args, **kwargs: Options.kwargs) -> Metric[[]]:
        """The same metric under another name, with its options settled."""
        score = partial(self.score, *args, **kwargs)
        return Metric(name, self.summary, score, self.better, self.about, self.percent, self.ordered)


def metric(
    of: Summary, better: Literal["higher", "lower"], percent: bool = False, ordered: bool = False
) -> Callable[[Callable[Concatenate[Tensor, Options], Tensor]], Metric[Options]]:
    """Make a metric of a score over the summaries `of`; name and docstring of the function carry over."""

    def wrap(score: Callable[Concatenate[Tensor, Options], Tensor]) -> Metric[Options]:
        name = getattr(score, "__name__", "metric")
        return Metric(name, of, score, better, (score.__doc__ or "").strip(), percent, ordered)

    return wrap


def check_logits(logits: Float[Tensor, "n k"]) -> None:
    """Refuse logits that would give a number without a meaning."""
    if logits.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"logits must be float32 or float64, not {logits.dtype}: precision is already lost")
    if math.prod(logits.shape) == 0:
        raise UserError(f"nothing to measure: the logits have shape {tuple(logits.shape)}")
    finite = logits.isfinite().all(dim=1)
    if not finite.all():
        broken = (~finite).nonzero().flatten()
        raise UserError(
            f"{len(broken)} of {len(logits)} rows of logits hold NaN or infinity (as row {int(broken[0])}): "
            "the model has diverged, or columns were masked with −inf instead of being left out"
        )


def check_predictions(logits: Float[Tensor, "n k"], label: Int[Tensor, " n"]) -> None:
    """Refuse logits and labels that do not belong together."""
    if logits.ndim != 2 or label.shape != logits.shape[:1]:
        raise ValueError(
            f"logits [n, k] and label [n] expected, not {list(logits.shape)} and {list(label.shape)}"
        )
    check_logits(logits)
    wrong = ((label < 0) | (label >= logits.shape[1])).nonzero().flatten()
    if len(wrong):
        row = int(wrong[0])
        raise UserError(
            f"label {int(label[row])} in row {row} is outside the {logits.shape[1]} classes "
            f"0…{logits.shape[1] - 1} ({len(wrong)} such rows of {len(label)})"
        )


def positive(name: str, value: int) -> int:
    """`value`, when it is a positive count."""
    if value < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")
    return value
