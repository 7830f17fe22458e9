"""The protocol that the paper's tables and ablations share: ten epochs of ImageNet as the released code trains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path

from tracer.api.evaluate import TestSets
from tracer.evaluation.suites.imagenet import TRAINING_IMAGES
from tracer.recipes.published import Published, published
from tracer.runs.experiment import Experiment
from tracer.sweep.product import Sweep

WARMUP = 500  # steps


def imagenet_steps(epochs: int, batch: int = 512) -> int:
    """Steps of some epochs of ImageNet; the last, partial batch of each counts, as in the released code."""
    return epochs * ceil(TRAINING_IMAGES / batch)


def protocol(
    data: str,
    held_out: str = "",
    classes: str = "imagenet",
    templates: str = "released",
    model: str = "ViT-B-16",
) -> Experiment:
    """The settings that all rows share. `data` are ImageNet's training images, or a folder with train and val in it."""
    train, val = Path(data) / "train", Path(data) / "val"
    if train.is_dir():
        data, held_out = str(train), held_out or (str(val) if val.is_dir() else "")
    return Experiment(
        data=data,
        held_out=held_out or None,
        classes=classes or None,
        model=model,
        pretrained="openai",
        templates=templates,
        steps=imagenet_steps(10),
        batch=512,
        lr=1e-5,
        warmup=WARMUP,
        decay=0.1,
        decay_on="all",
        clamp_scale=False,
        augment="crop",
        batchnorm="train",
    )


def compared(
    experiments: Sequence[Experiment],
    title: str,
    table: str,
    row: Callable[[Experiment], str],
    *,
    data: str,
    root: str = "",
    templates: str = "released",
) -> Sweep:
    """A sweep whose runs are scored on ImageNet and its shifts and compared with a table of the paper.

    The test sets lie below `root`, by default below `data` if that holds the training images in a folder train.
    Without either, nothing is scored.
    """
    place = root or (data if (Path(data) / "train").is_dir() else "")
    tests = TestSets(suite="imagenet", root=Path(place), templates=templates) if place else None
    return Sweep(tuple(experiments), tests=tests, published=Published(title, row, published(table)))
