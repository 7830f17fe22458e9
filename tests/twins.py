"""Every term a second time, in NumPy and float64, written from its equation: sums over i and j, no shared code."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor
from torch.utils._pytree import tree_map_only

from tracer.core.batch import Scene


def arrays(scene: Scene) -> Any:
    """The scene with arrays for tensors."""
    return tree_map_only(Tensor, lambda tensor: tensor.detach().numpy(), scene)


def softmax(rows: np.ndarray) -> np.ndarray:
    return np.exp(rows) / np.exp(rows).sum(axis=1, keepdims=True)


def kl(taught: np.ndarray, learned: np.ndarray) -> float:
    p, q = softmax(taught), softmax(learned)
    return float(
        np.mean([sum(p[i, j] * np.log(p[i, j] / q[i, j]) for j in range(p.shape[1])) for i in range(len(p))])
    )


def cross_entropy(rows: np.ndarray, target: np.ndarray) -> float:
    return float(-np.mean((target * np.log(softmax(rows))).sum(axis=1)))


def one_hot(label: np.ndarray, classes: int) -> np.ndarray:
    return np.eye(classes)[label]


def same_class(label: np.ndarray) -> np.ndarray:
    """Row i: evenly over the pairs with i's label; −1 is a label of nobody else."""
    n = len(label)
    same = np.array(
        [[i == j or (label[i] == label[j] and label[i] >= 0) for j in range(n)] for i in range(n)]
    )
    return same / same.sum(axis=1, keepdims=True)


def similarity(images: np.ndarray, texts: np.ndarray, scale: float) -> np.ndarray:
    return np.array([[scale * float(np.dot(u, v)) for v in texts] for u in images])


def own(embedding: Any) -> np.ndarray:
    return similarity(embedding.image, embedding.text, embedding.scale)


def classify(scene: Any, smoothing: float = 0.0) -> float:
    count = scene.student.scores.shape[1]
    target = (1 - smoothing) * one_hot(scene.label, count) + smoothing / count
    return cross_entropy(scene.student.scores, target)


def contrastive(scene: Any, targets: str = "pair") -> float:
    logits = own(scene.student)
    target = np.eye(len(logits)) if targets == "pair" else same_class(scene.label)
    return (cross_entropy(logits, target) + cross_entropy(logits.T, target)) / 2


def feature(scene: Any) -> float:
    pairs = [(scene.student.image, scene.teacher.image), (scene.student.text, scene.teacher.text)]
    return float(
        sum(np.linalg.norm(a[i] - b[i]) ** 2 for a, b in pairs for i in range(len(a))) / len(pairs[0][0])
    )


def relational(scene: Any) -> float:
    return kl(own(scene.teacher), own(scene.student)) + kl(own(scene.teacher).T, own(scene.student).T)


def mixed(scene: Any) -> tuple[np.ndarray, np.ndarray]:
    student, teacher = scene.student, scene.teacher
    return (
        similarity(student.image, teacher.text, student.scale),
        similarity(student.text, teacher.image, student.scale),
    )


def interactive(scene: Any, targets: str = "pair") -> float:
    image, text = mixed(scene)
    target = np.eye(len(image)) if targets == "pair" else same_class(scene.label)
    return (cross_entropy(image, target) + cross_entropy(text, target)) / 2


def cross(scene: Any) -> float:
    image, text = mixed(scene)
    return (kl(own(scene.teacher), image) + kl(own(scene.teacher).T, text)) / 2


def cross_frobenius(scene: Any, squared: bool = False) -> float:
    image, text = scene.student.projections
    total = sum(float(np.dot(row, other)) ** 2 for row in image for other in text)
    return total / 2 if squared else total**0.5


def orthogonal(scene: Any, of: str = "columns") -> float:
    image, _ = scene.student.projections
    image = image if of == "columns" else image.T
    columns = range(image.shape[1])
    return sum((float(image[:, a] @ image[:, b]) - (a == b)) ** 2 for a in columns for b in columns) ** 0.5


def anchored(scene: Any) -> float:
    logits = own(scene.student.anchors)
    target = np.eye(len(logits))
    return (cross_entropy(logits, target) + cross_entropy(logits.T, target)) / 2


def soft_classes(scene: Any, temperature: float = 1.0) -> float:
    return temperature**2 * kl(scene.teacher.scores / temperature, scene.student.scores / temperature)


def soft_pairs(scene: Any) -> float:
    taught, learned = own(scene.teacher), own(scene.student)
    return cross_entropy(learned, softmax(taught)) + cross_entropy(learned.T, softmax(taught.T))


def probed(embedding: Any, scale: float | None = None) -> np.ndarray:
    return similarity(embedding.image, embedding.probe, embedding.scale if scale is None else scale)


def energy(scene: Any) -> float:
    gap = probed(scene.student) - probed(scene.teacher)
    return float(np.mean([np.linalg.norm(row) ** 2 / (2 * len(row)) for row in gap]))


def context(scene: Any, direction: str = "teacher") -> float:
    taught, learned = probed(scene.teacher), probed(scene.student)
    return kl(taught, learned) if direction == "teacher" else kl(learned, taught)


def spurious(scene: Any) -> float:
    scale, label, n = scene.teacher.scale, scene.label, len(scene.label)
    taught, learned = probed(scene.teacher), probed(scene.student, scale)
    rows = []
    for i in range(n):
        others = [j for j in range(n) if j != i and label[j] != label[i]]
        rows.append(kl(taught[i : i + 1, others], learned[i : i + 1, others]))
    return float(np.mean(rows))


def margin(scene: Any, strength: float = 0.3) -> float:
    student, classes = scene.student, scene.student.classes
    away = 1 - np.array([[float(np.dot(classes[y], c)) for c in classes] for y in scene.label])
    logits = student.scale * (similarity(student.image, classes, 1.0) + strength * away)
    return cross_entropy(logits, one_hot(scene.label, len(classes)))


def token_features(scene: Any) -> float:
    taps = []
    for mine, theirs in zip(scene.student.tokens, scene.teacher.tokens, strict=True):
        total = 0.0
        for a, b in zip(mine, theirs, strict=True):  # [token, feature] of one image
            for d in range(a.shape[1]):
                total += float(
                    np.sum((a[:, d] / np.linalg.norm(a[:, d]) - b[:, d] / np.linalg.norm(b[:, d])) ** 2)
                )
        taps.append(total / mine.size)
    return float(np.mean(taps))


def intermediate(scene: Any, unit: bool = True) -> float:
    total = 0.0
    for mine, theirs in zip(scene.student.features, scene.teacher.features, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            if unit:
                a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
            total += float(np.sum((a - b) ** 2))
    return total / len(scene.student.image)
