"""The strategies that are compared: methods of the library on the image tower, each over its own range of λ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Variant:
    """A strategy at one λ, as a method with options."""

    strategy: str
    strength: float | None
    method: str
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.strategy if self.strength is None else f"{self.strategy}-{self.strength:g}"


@dataclass(frozen=True)
class Strategy:
    """A method and the λ at which it is run, weakest first; empty for a method without λ."""

    title: str
    method: str
    strengths: tuple[float, ...] = ()
    short: tuple[float, ...] = ()  # without --frontier: the best λ of docs/toy.md, and a larger one
    options: Mapping[str, Any] = field(default_factory=dict)


FEATURE = {"preset": "feature"}  # FD alone: the loss of the paper's analysis

STRATEGIES: dict[str, Strategy] = {
    "direct": Strategy("direct", "flyp"),
    "l2": Strategy("L2", "l2sp", (0.01, 0.1, 1, 10, 100), (1, 10), {"loss": "contrastive"}),
    "static": Strategy("static FD", "static_sd", (0.3, 1, 3, 10, 30), (1, 10), FEATURE),
    "ema": Strategy("EMA FD", "ema_sd", (1, 3, 10, 30, 100), (3, 30), FEATURE),
    "dynamic": Strategy("WMA FD", "tracer", (1, 3, 10, 30, 100), (3, 30), FEATURE),
    "composite": Strategy("static, full loss", "static_sd", (0.3, 1, 3), (0.3, 1)),
    "tracer": Strategy("TRACER", "tracer", (1, 3, 10), (1, 3)),
}
# With the task "digit", as in an early script of the authors: the dynamic teacher of that script.
EARLY = {"slow": Strategy("EMA 0.99999 FD", "ema_sd", (1, 10), (1, 10), {**FEATURE, "momentum": 0.99999})}
TITLES = {"pretrained": "pretrained", **{name: each.title for name, each in (STRATEGIES | EARLY).items()}}


def variants(frontier: bool, task: str = "colour") -> Iterator[Variant]:
    """Every strategy at each of its λ, or at two of them without the frontier."""
    for name, strategy in (STRATEGIES | (EARLY if task == "digit" else {})).items():
        strengths = strategy.strengths if frontier else strategy.short
        for strength in strengths or (None,):
            weight = {} if strength is None else {"strength": strength}
            yield Variant(name, strength, strategy.method, {**strategy.options, **weight, "tune": "image"})
