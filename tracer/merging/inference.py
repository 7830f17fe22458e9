"""A pretrained and a finetuned model at inference: alone, as an ensemble, and merged per image (DaWin)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from tracer.core.weights import Weights
from tracer.data.examples import Examples
from tracer.evaluation.predict import Predictions
from tracer.merging.dawin import clustered, coefficients, ensemble, entropies, mixed
from tracer.merging.evaluator import Evaluator
from tracer.merging.merges import single_run
from tracer.merging.wise import interpolate

Kind = Literal["samples", "clustered"]


class ModelPair:
    """A finished run, its pretrained model, and the predictions of both on the evaluator's held-out data."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator, self.examples = evaluator, evaluator.held_out
        self.start, self.end = single_run(evaluator.group, "an ensemble")
        self.pretrained = self._predict(self.start, self.examples)
        self.finetuned = self._predict(self.end, self.examples)

    def ensemble(self, coefficient: float | Tensor) -> Predictions:
        """Predictions with probabilities (1−λ) p₀ + λ p₁."""
        return self.pretrained._replace(
            logits=ensemble(self.pretrained.logits, self.finetuned.logits, coefficient)
        )

    def coefficients(self, kind: Kind) -> Tensor:
        """DaWin's λ of every image, from the entropies of both predictions."""
        coefficient = coefficients(entropies(self.pretrained.logits), entropies(self.finetuned.logits))
        return clustered(coefficient) if kind == "clustered" else coefficient

    def dawin(self, coefficient: Tensor) -> Predictions:
        """Predictions under weights interpolated by each image's own λ."""

        def predict(alpha: float, indices: Tensor) -> Tensor:
            weights = self.evaluator.with_batchnorm_statistics(interpolate(self.start, self.end, alpha))
            return self._predict(weights, self.examples.take(indices.numpy())).logits

        return self.pretrained._replace(logits=mixed(coefficient, predict))

    def _predict(self, weights: Weights, examples: Examples) -> Predictions:
        with torch.no_grad():
            return self.evaluator.scorer(weights).predict(examples, self.evaluator.group.plan.templates)
