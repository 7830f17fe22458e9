"""Scenes of random unit vectors in float64, and what the tests compute with: NumPy, from the definitions."""

from __future__ import annotations

import numpy as np
import torch

from tracer.core.batch import Embedding, Scene

N, D, C, M = 6, 5, 4, 7  # samples, dimensions, classes, probe texts


def unit(rng: np.random.Generator, rows: int) -> np.ndarray:
    values = rng.normal(size=(rows, D))
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def embedding(rng: np.random.Generator, scale: float) -> Embedding:
    return Embedding(
        image=tensor(unit(rng, N)),
        text=tensor(unit(rng, N)),
        scale=torch.tensor(scale, dtype=torch.float64),
        scores=tensor(rng.normal(size=(N, C))),
        classes=tensor(unit(rng, C)),
        probe=tensor(unit(rng, M)),
        projections=(tensor(rng.normal(size=(8, D))), tensor(rng.normal(size=(7, D)))),
        features=(tensor(rng.normal(size=(N, 3))), tensor(rng.normal(size=(N, 9)))),
        anchors=Embedding(tensor(unit(rng, N)), tensor(unit(rng, N)), torch.tensor(3.0, dtype=torch.float64)),
    )


def scene(seed: int = 0) -> Scene:
    """A student at temperature 1/4 and a teacher at 1/7, over six samples of four classes."""
    rng = np.random.default_rng(seed)
    student, teacher = embedding(rng, 4.0), embedding(rng, 7.0)
    return Scene(student, teacher, torch.tensor([0, 1, 2, 0, 3, 1]))


def tensor(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values, np.float64)).requires_grad_(True)


def array(value: torch.Tensor | None) -> np.ndarray:
    assert value is not None
    return value.detach().numpy()


def softmax(rows: np.ndarray) -> np.ndarray:
    powers = np.exp(rows - rows.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def kl(p: np.ndarray, q: np.ndarray) -> float:
    """mean_i Σ_k p log(p/q), terms with p = 0 counting nothing."""
    safe = np.where(p > 0, p * (np.log(np.where(p > 0, p, 1)) - np.log(np.where(p > 0, q, 1))), 0)
    return float(safe.sum(axis=1).mean())


def cross_entropy(logits: np.ndarray, label: np.ndarray) -> float:
    return float(-np.log(softmax(logits)[np.arange(len(label)), label]).mean())
