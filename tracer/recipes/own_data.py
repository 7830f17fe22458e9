"""Starting points for your own data, by its size. They are sensible but not tuned: sweep --lr first.

    tracer sweep tracer.recipes.own_data:images_2000 --data photos/
    tracer sweep tracer.recipes.own_data:images_200 --data photos/ --method flyp

Fewer images get a lower learning rate, a smaller batch and more epochs; every run has about a hundred steps or more,
so that the teacher has enough weights to average. For CLIP ViT-B/16 on one GPU; `--model` takes any other.

Args:
    data: your images: a folder, a table, shards or hf:NAME.
    method: a method of `tracer list methods`.
    model: open_clip model to start from.
    retain: data on which to measure forgetting.
"""

from __future__ import annotations

from tracer.runs.experiment import Experiment


def images_200(*, data: str, method: str = "tracer", model: str = "ViT-B-16", retain: str = "") -> Experiment:
    """About 200 images: 30 epochs at batch 32, with a low learning rate and almost no weight decay."""
    return _experiment(data, method, model, retain, epochs=30, batch=32, lr=3e-6, decay=0.01)


def images_2000(
    *, data: str, method: str = "tracer", model: str = "ViT-B-16", retain: str = ""
) -> Experiment:
    """About 2 000 images: 20 epochs at batch 64."""
    return _experiment(data, method, model, retain, epochs=20, batch=64, lr=5e-6, decay=0.1)


def images_20000(
    *, data: str, method: str = "tracer", model: str = "ViT-B-16", retain: str = ""
) -> Experiment:
    """About 20 000 images: 10 epochs at batch 128, with the paper's learning rate."""
    return _experiment(data, method, model, retain, epochs=10, batch=128, lr=1e-5, decay=0.1)


def _experiment(data: str, method: str, model: str, retain: str, **settings: float) -> Experiment:
    kept = (retain,) if retain else ()
    return Experiment(data=data, method=method, model=model, retain=kept, **settings)  # pyright: ignore
