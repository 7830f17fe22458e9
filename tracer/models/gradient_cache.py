"""Gradient caching: exact gradients of large batches in the memory of one chunk (arXiv 2101.06983).

Loss terms depend on embeddings only. A batch is embedded chunk by chunk without keeping the graph, the loss of the
whole batch gives the gradient at the embeddings, and each chunk is run again to propagate its part of that gradient
to the weights. The cost is one more forward. Inputs of the loss that are not rows of the batch (temperature, head,
projections) are taken from the first chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import ceil
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import checkpoint

from tracer.core.batch import PAIRED, Batch, Embedding
from tracer.core.errors import UserError
from tracer.models.running_statistics import running_layers
from tracer.models.student import Student

Embed = Callable[[Batch, frozenset[str]], Embedding]  # a student or its teacher


def embed(model: Embed, batch: Batch, needs: frozenset[str], chunk: int | None = None) -> Embedding:
    """The embedding of a batch, computed `chunk` images at a time; values and gradients do not change."""
    if chunk is None or len(batch.image) <= chunk:
        return model(batch, needs)
    parts = [_checkpointed(model, part, needs) for part in chunks(batch, chunk)]
    embedding = _joined(parts, batch.caption)
    if "anchors" in needs and batch.anchors is not None:
        embedding = embedding._replace(anchors=embed(model, batch.anchors, frozenset({"text"}), chunk))
    return embedding


def embed_both(
    student: Student,
    teacher: Embed | None,
    batch: Batch,
    needs: frozenset[str],
    chunk: int | None = None,
    prefix: AbstractContextManager[object] | None = None,
    shown: Batch | None = None,
) -> tuple[Embedding, Embedding | None]:
    """The embeddings of a batch by student and teacher, who is shown a part of it, `shown`, or all.

    If the text tower is frozen, the teacher's text embeddings are the student's and are not computed again; in the
    context `prefix`, the same holds for the outputs of frozen first blocks.
    """
    if teacher is None:
        return embed(student, batch, needs, chunk), None
    shared = needs & {"text", "probe"} if student.text_frozen else frozenset[str]()
    with prefix or nullcontext():
        student_embedding = embed(student, batch, needs, chunk)
        teacher_embedding = embed(teacher, shown or batch, needs - shared, chunk)
    same = (
        student_embedding if shown is None else student_embedding.every(len(batch.image) // len(shown.image))
    )
    texts = {name: getattr(same, name) for name in shared}
    return student_embedding, teacher_embedding._replace(**texts)


def chunks(batch: Batch, chunk: int) -> list[Batch]:
    """A batch in parts of at most `chunk` images, with its distinct texts divided evenly among them."""
    count = ceil(len(batch.image) / chunk)
    texts, probes = _split(batch.text, count), _split(batch.probe, count)
    parts = zip(batch.image.tensor_split(count), texts, probes, strict=True)
    return [Batch(image, text=text, probe=probe) for image, text, probe in parts]


def refuse_batch_statistics(student: Student) -> None:
    """Raise an error if BatchNorm is in train mode: chunks would change its statistics and so the gradients."""
    layers = [name for name, layer in running_layers(student).items() if layer.training]
    if layers:
        raise UserError(
            f"--chunk cannot be exact for {student.name}: {len(layers)} BatchNorm layers see the whole batch "
            f"({layers[0]}, …). Use --batchnorm keep, a model without them, or a smaller --batch"
        )


def _checkpointed(model: Embed, part: Batch, needs: frozenset[str]) -> Embedding:
    """Embed without keeping the graph; the backward recomputes it with the same random numbers."""
    texts = {"text": part.text, "probe": part.probe}
    available = needs - {"anchors"} - {name for name, rows in texts.items() if rows is None}
    return checkpoint(model, part, available, use_reentrant=False)  # pyright: ignore[reportReturnType]


def _split(rows: Tensor | None, count: int) -> Sequence[Tensor | None]:
    if rows is None:
        return [None] * count
    return [part if len(part) else None for part in rows.tensor_split(count)]


def _joined(parts: Sequence[Embedding], caption: Tensor | None) -> Embedding:
    rows = {name: _rows([getattr(part, name) for part in parts]) for name in (*PAIRED, "probe")}
    if rows["text"] is not None and caption is not None:
        rows["text"] = rows["text"][caption]
    return parts[0]._replace(**rows)


def _rows(values: Sequence[Any]) -> Any:
    """The rows of all parts that have some; of several blocks, those of each block."""
    present = [value for value in values if value is not None]
    return tree_map(lambda *tensors: torch.cat(tensors), *present) if present else None
