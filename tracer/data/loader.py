"""Batches as a pure function of seed and step: resuming needs no replay, and ranks need no communication."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from tracer.core.batch import Batch
from tracer.core.errors import UserError
from tracer.data.examples import Examples, Images, Pixels
from tracer.data.transforms import Transform
from tracer.models.prompts import render
from tracer.models.text import Tokeniser

T = TypeVar("T")

# The first element of the seed of each random stream, which keeps the streams independent.
ORDER, CAPTION, AUGMENT, PROBE = 1, 2, 3, 4

# Signals with which schedulers, terminals and users stop a run. They may reach every process of it.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)

Captions = Callable[[], Sequence[str]]  # the texts of the global batch, made only if a draw needs them
Draw = Callable[[np.random.Generator, Captions], Tensor]  # further texts of a step: token ids or embeddings


class WorkerLost(UserError):
    """A worker process has ended, so that the next batch cannot be read."""


class Batches(Dataset[Batch]):
    """Batch number `step`, for any step. An epoch visits every example once and drops the last, incomplete batch.

    The text of an image is one of its captions, or else its class name in a template, drawn anew at each step.
    Without class labels, examples with the same captions share a label, so that they count as positives.
    """

    def __init__(
        self,
        examples: Examples,
        *,
        batch: int,
        seed: int,
        transform: Transform,
        tokeniser: Tokeniser | None = None,
        templates: Sequence[str] = ("{}",),
        probe: Draw | None = None,
        anchors: Batches | None = None,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        if batch > len(examples):
            raise ValueError(f"a batch of {batch} cannot be drawn from {len(examples)} examples")
        if batch % ranks:
            raise ValueError(f"a batch of {batch} does not divide among {ranks} processes")
        self.examples, self.batch, self.seed = examples, batch, seed
        self.transform, self.tokeniser, self.templates = transform, tokeniser, tuple(templates)
        self.probe, self.anchors = probe, anchors
        self.share = slice(rank * batch // ranks, (rank + 1) * batch // ranks)
        self.labels = examples.labels if examples.labelled else _caption_groups(examples)
        if tokeniser is not None:
            _check_texts(examples)

    @property
    def per_epoch(self) -> int:
        """Batches per epoch."""
        return len(self.examples) // self.batch

    def indices(self, step: int) -> np.ndarray:
        """The indices of this process's examples in batch `step`."""
        return self._all_indices(step)[self.share]

    def _all_indices(self, step: int) -> np.ndarray:
        """The indices of all processes' examples in batch `step`."""
        epoch, position = divmod(step, self.per_epoch)
        order = _order(len(self.examples), self.seed, epoch)
        return order[position * self.batch : (position + 1) * self.batch]

    def __getitem__(self, step: int) -> Batch:
        indices = self.indices(step)
        epoch = step // self.per_epoch
        generators = (np.random.default_rng([AUGMENT, self.seed, epoch, int(i)]) for i in indices)
        image = self.transform.batch(self.examples.images, indices, generators)
        batch = Batch(image=image, label=torch.from_numpy(self.labels[indices]))
        if self.probe is not None:
            rng = np.random.default_rng([PROBE, self.seed, step])
            batch = batch._replace(probe=self.probe(rng, lambda: self.texts(self._all_indices(step), step)))
        if self.anchors is not None:
            batch = batch._replace(anchors=self.anchors[step])
        if self.tokeniser is None:
            return batch
        texts, caption = np.unique(self.texts(indices, step), return_inverse=True)
        return batch._replace(text=self.tokeniser(texts.tolist()), caption=torch.from_numpy(caption))

    def texts(self, indices: np.ndarray, step: int) -> list[str]:
        """One text for each example, as drawn at this step."""
        return [
            self._text(int(i), np.random.default_rng([CAPTION, self.seed, step, int(i)])) for i in indices
        ]

    def _text(self, index: int, rng: np.random.Generator) -> str:
        captions = self.examples.captions[index]
        if captions:
            return captions[rng.integers(len(captions))]
        template = self.templates[rng.integers(len(self.templates))]
        return render(template, self.examples.classes[self.examples.labels[index]])


class InOrder(Dataset[Tensor]):
    """Images for evaluation, without augmentation: batch `step` holds those at `rows[step]`."""

    def __init__(self, images: Images, rows: Sequence[Sequence[int]], transform: Transform) -> None:
        self.images, self.rows, self.transform = images, rows, transform

    def __getitem__(self, step: int) -> Tensor:
        return self.transform.batch(self.images, self.rows[step])


def decoders(images: Images, neighbours: int = 1) -> int:
    """The default number of worker processes: 0 for pixels in memory, else up to 8.

    `neighbours` is the number of training processes that share the cores of the machine.
    """
    return 0 if isinstance(images, Pixels) else min(8, (os.cpu_count() or 1) // neighbours)


def loader(batches: Dataset[T], steps: range, workers: int = 0, pin: bool = False) -> Iterator[T]:
    """The batches of `steps`, in order, prefetched by worker processes.

    Signals that stop a run do not reach workers: they end with this process, which may still need them.
    """
    data = DataLoader(
        batches,
        batch_size=None,
        sampler=steps,
        num_workers=workers,
        pin_memory=pin,
        worker_init_fn=_end_with_parent,
        generator=torch.Generator(),  # its own, so that the loader draws nothing from the global one
    )
    # Workers inherit the mask from their first instruction on.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        iterator = iter(data)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    with worker_errors(ConnectionError, EOFError):  # a pipe that breaks while a batch is handed over
        yield from iterator


@contextmanager
def worker_errors(*others: type[Exception]) -> Iterator[None]:
    """A context in which the death of a worker, which torch may raise at any line, is raised as `WorkerLost`.

    So are `others`. An error of the user's in a worker, such as a file that is gone, is raised without the traceback
    that torch puts into its message.
    """
    try:
        yield
    except UserError as error:
        _, traceback, message = str(error).rpartition(f"{UserError.__module__}.{UserError.__qualname__}: ")
        if not traceback:
            raise
        raise UserError(message.strip()) from None
    except (RuntimeError, *others) as error:
        if not isinstance(error, others) and "DataLoader worker" not in str(error):
            raise
        message = " ".join(str(error).split()).partition(" It is possible")[0].rstrip(".")
        raise WorkerLost(
            f"a process that reads images has ended ({message}), often for lack of memory: use fewer --workers"
        ) from None


@lru_cache(maxsize=8)
def _order(count: int, seed: int, epoch: int) -> np.ndarray:
    return np.random.default_rng([ORDER, seed, epoch]).permutation(count)


def _check_texts(examples: Examples) -> None:
    """Raise UserError for examples with neither caption nor class: label −1 would index the last class name."""
    missing = [i for i, texts in enumerate(examples.captions) if not texts and examples.labels[i] < 0]
    if missing:
        first = examples.ids[missing[0]]
        raise UserError(
            f"{examples.name}: {len(missing)} have neither caption nor class, {first} is the first"
        )


def _caption_groups(examples: Examples) -> np.ndarray:
    """A label for each example; equal captions have equal labels."""
    groups: dict[tuple[str, ...], int] = {}
    return np.array(
        [groups.setdefault(tuple(texts), len(groups)) for texts in examples.captions], dtype=np.int64
    )


def _end_with_parent(worker: int) -> None:
    """Let SIGTERM end this worker if its parent sends it, and only then."""
    del worker
    parent = os.getppid()

    def wait() -> None:
        while signal.sigwaitinfo({signal.SIGTERM}).si_pid != parent:
            pass
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()
