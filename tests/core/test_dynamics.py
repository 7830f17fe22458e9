"""Probes of teacher and student against a NumPy twin, and what they must be at the corners."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import twins
from torch import nn
from torch.nn.functional import normalize

from tracer.core.batch import Embedding, Scene
from tracer.core.dynamics import distance, entropy, probes


def scene(n: int = 9, seed: int = 0) -> Scene:
    generator = torch.Generator().manual_seed(seed)

    def rows() -> torch.Tensor:
        return normalize(torch.randn(n, 6, dtype=torch.float64, generator=generator))

    return Scene(Embedding(rows(), rows(), 3.0), Embedding(rows(), rows(), 2.0))


def test_probes_equal_their_twins() -> None:
    here = scene()
    found = {name: float(value) for name, value in probes(here).items()}
    arrays = twins.arrays(here)
    taught, learned = twins.own(arrays.teacher), twins.own(arrays.student)
    p, q = twins.softmax(taught), twins.softmax(learned)
    top = [set(np.argsort(-a)[:5]) & set(np.argsort(-b)[:5]) for a, b in zip(p, q, strict=True)]
    assert found == pytest.approx(
        {
            "kl": (twins.kl(taught, learned) + twins.kl(taught.T, learned.T)) / 2,
            "teacher_entropy": -(p * np.log(p)).sum(axis=1).mean(),
            "student_entropy": -(q * np.log(q)).sum(axis=1).mean(),
            "teacher_confidence": p.max(axis=1).mean(),
            "teacher_entropy_both": both(taught, lambda p: -(p * np.log(p)).sum(axis=1).mean()),
            "student_entropy_both": both(learned, lambda p: -(p * np.log(p)).sum(axis=1).mean()),
            "teacher_confidence_both": both(taught, lambda p: p.max(axis=1).mean()),
            "agreement": (p.argmax(axis=1) == q.argmax(axis=1)).mean(),
            "top5_overlap": np.mean([len(both) / 5 for both in top]),
            "teacher_pair": np.diag(p).mean(),
            "student_pair": np.diag(q).mean(),
        }
    )


def both(logits: np.ndarray, measure: Callable[[np.ndarray], float]) -> float:
    """The mean of a measure over images to texts and texts to images."""
    return (measure(twins.softmax(logits)) + measure(twins.softmax(logits.T))) / 2


def test_a_teacher_like_the_student_teaches_nothing() -> None:
    here = scene()
    found = probes(here._replace(teacher=here.student))
    assert float(found["kl"]) == pytest.approx(0, abs=1e-12)
    assert float(found["agreement"]) == float(found["top5_overlap"]) == 1
    assert float(found["teacher_pair"]) == float(found["student_pair"])


def test_small_batches_have_no_five_best() -> None:
    assert "top5_overlap" not in probes(scene(n=5))
    assert "top5_overlap" in probes(scene(n=6))


def test_without_pairs_or_teacher_there_is_nothing_to_probe() -> None:
    here = scene()
    assert probes(here._replace(teacher=None)) == {}
    assert probes(here._replace(student=here.student._replace(text=None))) == {}


def test_probes_keep_no_graph() -> None:
    here = scene()
    here.student.image.requires_grad_()
    assert not any(value.requires_grad for value in probes(here).values())


def test_entropy_runs_from_zero_to_log_k() -> None:
    even = torch.full((2, 8), -math.log(8), dtype=torch.float64)
    assert float(entropy(even)) == pytest.approx(math.log(8))
    sure = torch.log_softmax(torch.tensor([[500.0, 0, 0]], dtype=torch.float64), dim=1)
    assert float(entropy(sure)) == pytest.approx(0, abs=1e-12)


def test_distance_is_that_of_all_weights_together() -> None:
    a, b = nn.Linear(2, 1), nn.Linear(2, 1).to(torch.bfloat16)
    a.weight.data, a.bias.data = torch.tensor([[1.0, 2.0]]), torch.tensor([3.0])
    b.weight.data, b.bias.data = torch.tensor([[1.0, 0.0]]).bfloat16(), torch.tensor([0.0]).bfloat16()
    assert float(distance(a, b)) == pytest.approx(math.sqrt(4 + 9))
    assert float(distance(a, a)) == 0
    with pytest.raises(ValueError, match=r"shorter|longer"):
        distance(a, nn.Linear(2, 1, bias=False))
