"""The protocol that the paper's tables and ablations share: ten epochs of ImageNet as the released code trains."""

from __future__ import annotations

from math import ceil

from tracer.runs.experiment import Experiment

IMAGES = 1_281_167  # of ImageNet's training set
WARMUP = 500  # steps


def imagenet_steps(epochs: int, batch: int = 512) -> int:
    """Steps of some epochs of ImageNet; the last, partial batch of each counts, as in the released code."""
    return epochs * ceil(IMAGES / batch)


def protocol(data: str, held_out: str, classes: str, templates: str, model: str = "ViT-B-16") -> Experiment:
    """The settings that all rows share."""
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
    )
