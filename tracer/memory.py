"""How much memory a run will take, measured on a batch of one and two instead of guessed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tracer.batch import Batch
from tracer.classifier import zero_shot
from tracer.model import Head, Student, load
from tracer.plan import Plan


@dataclass(frozen=True)
class Estimate:
    """Bytes by purpose, for one process."""

    parameters: int
    trainable: int
    weights: int
    gradients: int
    optimiser: int
    teacher: int
    anchors: int
    activations: int

    @property
    def total(self) -> int:
        return (
            self.weights + self.gradients + self.optimiser + self.teacher + self.anchors + self.activations
        )

    def lines(self) -> list[tuple[str, str]]:
        rows = [("parameters", f"{self.parameters:,}"), ("trainable parameters", f"{self.trainable:,}")]
        for name in ("weights", "gradients", "optimiser", "teacher", "anchors", "activations", "total"):
            rows.append((f"memory: {name}", f"{getattr(self, name) / 2**30:.2f} GiB"))
        return rows


def estimate(plan: Plan) -> Estimate:
    """Build the model, without downloading its weights, and count what the first stage will hold."""
    student = load(plan.experiment.model, None, seed=0)
    stage = plan.method.stages[0] if plan.method.stages else None
    everything = sum(p.numel() for p in student.parameters())
    if stage is None:
        return Estimate(everything, 0, 4 * everything, 0, 0, 0, 0, 0)
    if "scores" in stage.objective.needs:
        student.head = Head(zero_shot(student, plan.train.classes, plan.templates[:1]))
    stage.tune(student)
    trainable = sum(p.numel() for p in student.parameters() if p.requires_grad)
    return Estimate(
        parameters=everything,
        trainable=trainable,
        weights=4 * everything,
        gradients=4 * trainable,
        optimiser=8 * trainable,
        teacher=4 * everything if stage.teacher else 0,
        anchors=4 * everything,  # the pretrained weights stay at hand for tethers, merging and the report
        activations=_activations(student, plan, stage.objective.needs),
    )


def _activations(student: Student, plan: Plan, needs: frozenset[str]) -> int:
    """Bytes that autograd keeps for a batch: what two images keep beyond one, times the batch."""
    one, two = (_saved(student, count, needs) for count in (1, 2))
    return one + (two - one) * (plan.batch - 1)


def _saved(student: Student, count: int, needs: frozenset[str]) -> int:
    size = student.preprocess["size"]
    height, width = size if isinstance(size, tuple | list) else (size, size)
    image = torch.zeros(count, 3, height, width, dtype=torch.uint8)
    text = student.tokeniser([f"a photo of a {word}." for word in ("dog", "cat")[:count]])
    owned = {p.untyped_storage().data_ptr() for p in student.parameters()}
    seen: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in owned:
            seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    kept = []  # storages must stay alive, or a second one could take the first one's address

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return note(tensor)

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        student.train()(Batch(image, text), needs - {"teacher"})
    return sum(seen.values())
