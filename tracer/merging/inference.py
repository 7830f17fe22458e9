"""Two models on the same images: each alone, their outputs mixed, their weights mixed for each image."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from tracer.data.examples import Examples
from tracer.evaluation.predict import Predictions
from tracer.merging.dawin import clustered, coefficients, ensemble, entropies, mixed
from tracer.merging.family import Family
from tracer.merging.judge import Judge
from tracer.merging.ways import only
from tracer.merging.wise import interpolate

Kind = Literal["samples", "clustered"]


class Pair:
    """A run and its pretrained model, and what each predicts on `examples`; nothing is trained or kept."""

    def __init__(self, family: Family, judge: Judge, examples: Examples) -> None:
        (self.end,) = only(family, "an ensemble")
        self.family, self.judge, self.examples = family, judge, examples
        self.known, self.learned = self._predict(family.start), self._predict(self.end)

    def ensemble(self, share: float | Tensor = 0.5) -> Predictions:
        """(1−λ) p₀ + λ p₁."""
        return self.known._replace(logits=ensemble(self.known.logits, self.learned.logits, share))

    def share(
        self, temperatures: tuple[float, float] = (1.0, 1.0), *, offset: bool = True, kind: Kind = "clustered"
    ) -> Tensor:
        """DaWin's λ of every image, from how sure each model is of it; temperatures of pretrained and finetuned."""
        sure = [
            entropies(found.logits, temperature)
            for found, temperature in zip((self.known, self.learned), temperatures, strict=True)
        ]
        share = coefficients(sure[0], sure[1], offset)
        return clustered(share) if kind == "clustered" else share

    def dawin(self, share: Tensor) -> Predictions:
        """Predictions under weights interpolated by each image's own λ, in the images' order."""

        def predict(alpha: float, indices: Tensor) -> Tensor:
            weights = self.judge.settled(interpolate(self.family.start, self.end, alpha))
            return self._predict(weights, self.examples.take(indices.numpy())).logits

        return self.known._replace(logits=mixed(share, predict))

    def _predict(self, weights: dict[str, Tensor], examples: Examples | None = None) -> Predictions:
        with torch.no_grad():
            scorer = self.judge.scorer(weights)
            return scorer.predict(examples or self.examples, self.family.plan.templates)
