"""A pretrained and a finetuned model at inference: alone, as an ensemble, and merged per image (DaWin)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from tracer.data.examples import Examples
from tracer.evaluation.predict import Predictions
from tracer.merging.dawin import clustered, coefficients, ensemble, entropies, mixed
from tracer.merging.evaluator import Evaluator
from tracer.merging.merges import single_run
from tracer.merging.run_group import RunGroup
from tracer.merging.wise import interpolate

Kind = Literal["samples", "clustered"]


class ModelPair:
    """A finished run, its pretrained model, and the predictions of both on `examples`."""

    def __init__(self, group: RunGroup, evaluator: Evaluator, examples: Examples) -> None:
        self.end = single_run(group, "an ensemble")
        self.group, self.evaluator, self.examples = group, evaluator, examples
        self.pretrained, self.finetuned = self._predict(group.start), self._predict(self.end)

    def ensemble(self, coefficient: float | Tensor = 0.5) -> Predictions:
        """Predictions with probabilities (1−λ) p₀ + λ p₁."""
        return self.pretrained._replace(
            logits=ensemble(self.pretrained.logits, self.finetuned.logits, coefficient)
        )

    def coefficients(
        self, temperatures: tuple[float, float] = (1.0, 1.0), *, offset: bool = True, kind: Kind = "clustered"
    ) -> Tensor:
        """DaWin's λ of every image, from the entropies of both predictions; one temperature for each model."""
        h0, h1 = (
            entropies(predictions.logits, temperature)
            for predictions, temperature in zip((self.pretrained, self.finetuned), temperatures, strict=True)
        )
        coefficient = coefficients(h0, h1, offset)
        return clustered(coefficient) if kind == "clustered" else coefficient

    def dawin(self, coefficient: Tensor) -> Predictions:
        """Predictions under weights interpolated by each image's own λ."""

        def predict(alpha: float, indices: Tensor) -> Tensor:
            weights = self.evaluator.with_batchnorm_statistics(interpolate(self.group.start, self.end, alpha))
            return self._predict(weights, self.examples.take(indices.numpy())).logits

        return self.pretrained._replace(logits=mixed(coefficient, predict))

    def _predict(self, weights: dict[str, Tensor], examples: Examples | None = None) -> Predictions:
        with torch.no_grad():
            scorer = self.evaluator.scorer(weights)
            return scorer.predict(examples or self.examples, self.group.plan.templates)
