"""Starting points for one's own data, by its size. They are sensible, not tuned: sweep --lr first.

    tracer sweep recipes.own_data:images_2000 --data photos/
    tracer sweep recipes.own_data:images_200 --data photos/ --method flyp

Fewer images mean smaller steps, a smaller batch and more passes; at every size a run has some hundred steps or
more, so that the teacher has a path to average. CLIP ViT-B/16 on one GPU; `--model` takes any other.

Args:
    data: your images: a folder, a table, shards or hf:NAME.
    method: any that `tracer list methods` names.
    model: to start from, of open_clip.
    retain: data on which to measure what is forgotten.
"""

from __future__ import annotations

from tracer.runs.experiment import Experiment


def images_200(*, data: str, method: str = "tracer", model: str = "ViT-B-16", retain: str = "") -> Experiment:
    """About 200 images: 30 passes at batch 32, a low rate, no weight decay to speak of."""
    return _own(data, method, model, retain, epochs=30, batch=32, lr=3e-6, decay=0.01)


def images_2000(
    *, data: str, method: str = "tracer", model: str = "ViT-B-16", retain: str = ""
) -> Experiment:
    """About 2 000 images: 20 passes at batch 64."""
    return _own(data, method, model, retain, epochs=20, batch=64, lr=5e-6, decay=0.1)


def images_20000(
    *, data: str, method: str = "tracer", model: str = "ViT-B-16", retain: str = ""
) -> Experiment:
    """About 20 000 images: 10 passes at batch 128, the paper's rate."""
    return _own(data, method, model, retain, epochs=10, batch=128, lr=1e-5, decay=0.1)


def _own(
    data: str, method: str, model: str, retain: str, *, epochs: float, batch: int, lr: float, decay: float
) -> Experiment:
    return Experiment(
        data=data,
        method=method,
        model=model,
        retain=(retain,) if retain else (),
        epochs=epochs,
        batch=batch,
        lr=lr,
        decay=decay,
    )
