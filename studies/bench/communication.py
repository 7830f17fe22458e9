"""What training costs on many processes, by arithmetic: bytes that move, bytes that stay, and the N² of the loss.

Every process holds the global scene and computes the whole loss, so the similarity of all N images to all N texts is
the one cost that more processes do not divide. Everything else is divided by them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch.utils.flop_counter import FlopCounterMode

from tracer.core.batch import Batch, Embedding, Scene
from tracer.core.objective import Objective
from tracer.models.student import Student

FLOAT = 4  # bytes: weights, gradients, moments, teacher and gathered embeddings are fp32


@dataclass(frozen=True)
class Model:
    """What a model brings to the sum."""

    parameters: int
    width: int  # of an embedding
    work: float  # floating-point operations of one forward of one image with its text


def measured(student: Student) -> Model:
    """A model's size and work, counted on one image with a text of its longest length."""
    size = student.preprocess["size"]
    height, width = size if isinstance(size, tuple | list) else (size, size)
    tokens = student.tokeniser.tokeniser(["a photo of a dog."])
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        seen = student(Batch(torch.zeros(1, 3, height, width), tokens), frozenset({"text"}))
    count = sum(parameter.numel() for parameter in student.parameters())
    return Model(count, seen.image.shape[1], float(counter.get_total_flops()))


@dataclass(frozen=True)
class Cost:
    """One step of one process, and one checkpoint."""

    gathered: float  # bytes of embeddings received
    reduced: float  # bytes of gradients sent: a ring all-reduce, or the reduce-scatter of shards
    weights: float  # bytes of weights received, where they are sharded
    held: float  # bytes of weights, gradients, moments and teacher that stay
    similarity: float  # bytes that the loss keeps for its backward
    share: float  # of all operations: those of the similarities
    saved: float  # bytes of a checkpoint: what the first process holds in its memory and writes, each time
    fetched: (
        float  # bytes of it that a process receives, where weights are sharded: all of it passes everywhere
    )

    @property
    def moved(self) -> float:
        return self.gathered + self.reduced + self.weights


def cost(
    model: Model,
    objective: Objective,
    *,
    processes: int,
    batch: int,
    neighbours: int = 8,
    shard: bool = False,
) -> Cost:
    """A step of `batch` images in all, on machines of `neighbours` processes each; all parameters are trained."""
    taught = "teacher" in objective.needs
    operations, kept = similarity(objective, model.width)
    group = min(processes, neighbours) if shard else 1
    machines = processes // group
    weights = FLOAT * model.parameters
    rows = batch * 2 * model.width * FLOAT * (1 + taught)
    inside, between = 1 - 1 / group, 1 - 1 / machines
    quadratic = operations * batch**2
    encoders = (3 + taught) * model.work * batch / processes  # a backward is two forwards
    return Cost(
        gathered=(1 - 1 / processes) * rows,
        reduced=weights * inside + 2 * weights / group * between,
        weights=weights
        * inside
        * (2 + taught),  # forward and backward of the student, forward of the teacher
        held=weights * (4 + taught) / group,
        similarity=kept * batch**2,
        share=quadratic / (quadratic + encoders),
        saved=weights * (3 + taught),
        fetched=weights * (3 + taught) * inside,
    )


def similarity(objective: Objective, width: int) -> tuple[float, float]:
    """Operations, and bytes kept for the backward, that an objective spends on each of its N² pairs: counted.

    What grows with N, or not at all, falls out of the second difference of three batches.
    """
    few = 48
    operations, kept = zip(*(_counted(objective, width, n) for n in (few, 2 * few, 3 * few)), strict=True)
    return tuple((first - 2 * second + third) / (2 * few**2) for first, second, third in (operations, kept))


def _counted(objective: Objective, width: int, count: int) -> tuple[int, int]:
    kept: dict[int, Tensor] = {}  # alive, or a second storage could take the first one's address

    def note(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    scene = _scene(objective, width, count)
    with FlopCounterMode(display=False) as counter:
        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            total = objective(scene).total
        total.backward()
    return counter.get_total_flops(), sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


def _scene(objective: Objective, width: int, count: int) -> Scene:
    generator, square = torch.Generator().manual_seed(0), torch.eye(width)

    def embedding(learns: bool) -> Embedding:
        image, text = (
            normalize(torch.randn(count, width, generator=generator)).requires_grad_(learns) for _ in range(2)
        )
        return Embedding(image, text, scale=torch.tensor(10.0), projections=(square, square))

    teacher = embedding(False) if "teacher" in objective.needs else None
    return Scene(embedding(True), teacher, torch.arange(count) % 8)
