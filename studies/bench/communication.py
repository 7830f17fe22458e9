"""The cost of training on many processes, computed: communication, memory, and the N² of the loss.

Every process holds the embeddings of the global batch and computes the whole loss, so the similarity of all N images to
all N texts is the one cost that is not divided among the processes.
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
    """The size and work of a model."""

    parameters: int
    width: int  # of an embedding
    work: float  # floating-point operations of the forward of one image and its text


def measured(student: Student) -> Model:
    """Count a model's parameters and operations, on one image and one text of full length."""
    size = student.preprocess_cfg["size"]
    height, width = size if isinstance(size, tuple | list) else (size, size)
    tokens = student.tokeniser.tokeniser(["a photo of a dog."])
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        embedding = student(Batch(torch.zeros(1, 3, height, width), tokens), frozenset({"text"}))
    count = sum(parameter.numel() for parameter in student.parameters())
    return Model(count, embedding.image.shape[1], float(counter.get_total_flops()))


@dataclass(frozen=True)
class Cost:
    """The cost of one step and of one checkpoint, for one process."""

    gathered: float  # bytes of embeddings received
    reduced: float  # bytes of gradients sent: a ring all-reduce, or the reduce-scatter of shards
    weights: float  # bytes of weights received, where they are sharded
    held: float  # bytes of weights, gradients, moments and teacher in memory
    similarity: float  # bytes that the loss saves for its backward
    share: float  # of all operations that is spent on similarities
    saved: float  # bytes of a checkpoint, which the first process holds in memory and writes
    fetched: float  # bytes of it that each process receives, where weights are sharded

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
    """The cost with a global batch of `batch`, `neighbours` processes on each machine, and all parameters trained."""
    has_teacher = "teacher" in objective.needs
    operations, saved_bytes = similarity(objective, model.width)
    group = min(processes, neighbours) if shard else 1
    machines = processes // group
    weights = FLOAT * model.parameters
    rows = batch * 2 * model.width * FLOAT * (1 + has_teacher)
    inside, between = 1 - 1 / group, 1 - 1 / machines
    quadratic = operations * batch**2
    encoders = (3 + has_teacher) * model.work * batch / processes  # a backward is two forwards
    return Cost(
        gathered=(1 - 1 / processes) * rows,
        reduced=weights * inside + 2 * weights / group * between,
        weights=weights * inside * (2 + has_teacher),  # student forward and backward, teacher forward
        held=weights * (4 + has_teacher) / group,
        similarity=saved_bytes * batch**2,
        share=quadratic / (quadratic + encoders),
        saved=weights * (3 + has_teacher),
        fetched=weights * (3 + has_teacher) * inside,
    )


def similarity(objective: Objective, width: int) -> tuple[float, float]:
    """Operations, and bytes saved for the backward, for each of the N² pairs of an objective, counted.

    The second difference of three batch sizes cancels what is constant or linear in N.
    """
    size = 48
    operations, saved_bytes = zip(
        *(_counted(objective, width, n) for n in (size, 2 * size, 3 * size)), strict=True
    )
    return tuple(
        (first - 2 * second + third) / (2 * size**2) for first, second, third in (operations, saved_bytes)
    )


def _counted(objective: Objective, width: int, count: int) -> tuple[int, int]:
    saved: dict[int, Tensor] = {}  # kept alive, or a later storage could reuse the address

    def note(tensor: Tensor) -> Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    scene = _scene(objective, width, count)
    with FlopCounterMode(display=False) as counter:
        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            total = objective(scene).total
        total.backward()
    return counter.get_total_flops(), sum(tensor.untyped_storage().nbytes() for tensor in saved.values())


def _scene(objective: Objective, width: int, count: int) -> Scene:
    generator, square = torch.Generator().manual_seed(0), torch.eye(width)

    def embedding(requires_grad: bool) -> Embedding:
        image, text = (
            normalize(torch.randn(count, width, generator=generator)).requires_grad_(requires_grad)
            for _ in range(2)
        )
        return Embedding(image, text, scale=torch.tensor(10.0), projections=(square, square))

    teacher = embedding(False) if "teacher" in objective.needs else None
    return Scene(embedding(True), teacher, torch.arange(count) % 8)
