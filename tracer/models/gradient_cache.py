"""Big batches on small memory, exactly.

Terms see embeddings only. So a batch is embedded a chunk at a time without keeping a graph, the loss of the whole
batch gives the gradient at its embeddings, and each chunk is then run once more to carry its share of that
gradient into the weights. The price is one more forward; the memory is that of one chunk. What enters the loss
beside the rows of a batch (temperature, class rows, projections) is taken from the first chunk, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tracer.core.batch import Batch, Embedding
from tracer.core.errors import UserError
from tracer.models.student import Student

Embed = Callable[[Batch, frozenset[str]], Embedding]  # a student, or the shadow of one


def embed(model: Embed, batch: Batch, needs: frozenset[str], chunk: int | None = None) -> Embedding:
    """What `model` makes of a batch, at most `chunk` images at a time; values and gradients are the same."""
    if chunk is None or len(batch.image) <= chunk:
        return model(batch, needs)
    parts = [_rerunnable(model, piece, needs) for piece in pieces(batch, chunk)]
    whole = _joined(parts, batch.caption)
    if "anchors" in needs and batch.anchors is not None:
        whole = whole._replace(anchors=embed(model, batch.anchors, frozenset({"text"}), chunk))
    return whole


def embed_both(
    student: Student, teacher: Embed | None, batch: Batch, needs: frozenset[str], chunk: int | None = None
) -> tuple[Embedding, Embedding | None]:
    """What student and teacher make of a batch.

    Where the text tower stays still, the average of its weights is those very weights: the teacher's texts are
    the student's, and are not computed a second time.
    """
    seen = embed(student, batch, needs, chunk)
    if teacher is None:
        return seen, None
    shared = needs & {"text", "probe"} if student.text_frozen else frozenset[str]()
    taught = embed(teacher, batch, needs - shared, chunk)
    return seen, taught._replace(**{name: getattr(seen, name) for name in shared})


def pieces(batch: Batch, chunk: int) -> list[Batch]:
    """A batch in parts of at most `chunk` images, with about as many of its distinct texts in each."""
    count = ceil(len(batch.image) / chunk)
    images, texts, probes = (_split(rows, count) for rows in (batch.image, batch.text, batch.probe))
    return [
        Batch(image, text=text, probe=probe)
        for image, text, probe in zip(images, texts, probes, strict=True)
        if image is not None
    ]


def refuse_batch_statistics(student: Student) -> None:
    """A model that normalises over the batch would see the statistics of a chunk: that is another model."""
    moving = [name for name, module in student.named_modules() if _normalises_over_batch(module)]
    if moving:
        raise UserError(
            f"--chunk cannot be exact for {student.name}: {len(moving)} BatchNorm layers see the whole batch "
            f"({moving[0]}, …). Use a model without them, or a smaller --batch"
        )


def _normalises_over_batch(module: nn.Module) -> bool:
    return isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training


def _rerunnable(model: Embed, piece: Batch, needs: frozenset[str]) -> Embedding:
    """Embed without keeping the graph; it is rebuilt, with the same random numbers, when its gradient comes."""
    given = {"text": piece.text, "probe": piece.probe}
    asked = needs - {"anchors"} - {name for name, rows in given.items() if rows is None}
    return checkpoint(model, piece, asked, use_reentrant=False)  # pyright: ignore[reportReturnType]


def _split(rows: Tensor | None, count: int) -> Sequence[Tensor | None]:
    if rows is None:
        return [None] * count
    return [part if len(part) else None for part in rows.tensor_split(count)]


def _joined(parts: Sequence[Embedding], caption: Tensor | None) -> Embedding:
    text = _rows([part.text for part in parts])
    features = [part.features for part in parts if part.features is not None]
    return parts[0]._replace(
        image=torch.cat([part.image for part in parts]),
        text=text if text is None or caption is None else text[caption],
        scores=_rows([part.scores for part in parts]),
        probe=_rows([part.probe for part in parts]),
        features=tuple(torch.cat(block) for block in zip(*features, strict=True)) if features else None,
    )


def _rows(values: Sequence[Tensor | None]) -> Tensor | None:
    present = [value for value in values if value is not None]
    return torch.cat(present) if present else None
