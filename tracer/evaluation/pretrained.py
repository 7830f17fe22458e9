"""What the pretrained model scores before training, kept in the user's cache folder for further runs on the same data.

A file holds for the same weights, config, data, prompts, versions and machine, so that numbers do not depend on whether
it is there. Losing it costs time and nothing else.
"""

from __future__ import annotations

import json
from contextlib import suppress
from copy import deepcopy
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from tracer.evaluation import measured
from tracer.evaluation.measured import Measured, measure
from tracer.evaluation.predict import Predictions, Scorer
from tracer.models.student import Student
from tracer.parallel import World
from tracer.runs.identity import content, short_hash
from tracer.runs.plan import Plan
from tracer.storage.atomic import write_bytes
from tracer.storage.cache import cache_folder
from tracer.storage.provenance import commit, versions
from tracer.storage.safetensors_io import CHECKSUM, tensors_blake2b

LARGEST = 2**26  # bytes of a file; larger ones are not kept
MOST_FILES = 64


def measure_pretrained(plan: Plan, world: World, model: Student, workers: int | None = None) -> Measured:
    """What `model` scores on the data of the plan; read from the cache, if it is there. `model` is not changed."""
    file = _file(plan, world)
    if file is not None and (known := _read(file)) is not None:
        return known
    copy = deepcopy(model)  # placed on the device for the scores only: training has its own copies there
    world.place(copy)
    scores = measure(plan, Scorer(copy, world, plan.train.classes, workers))
    if file is not None:
        _write(file, scores)
    return scores


def _file(plan: Plan, world: World) -> Path | None:
    """Where the scores are kept; None if the content of model or images is not known, or several processes score."""
    parts = content(plan)
    unread = any(data.contents is None for data in (plan.held_out, *plan.retain))
    if parts["weights"] is None or plan.experiment.pretrained == "none" or unread or world.size > 1:
        return None
    names = ("held-out", "retained set", "templates", "model config", "weights")
    key = {name: digest for name, digest in parts.items() if name.startswith(names)}
    key |= {"model": plan.experiment.model, "adapter": plan.experiment.adapter, "code": commit()}
    key |= {
        "classes": list(plan.train.classes),
        "images seen": plan.steps * plan.batch,
        "names": measured.known_names(),
    }
    return (
        cache_folder() / "pretrained" / f"{short_hash([key, versions(), world.describe()], 16)}.safetensors"
    )


def _write(file: Path, scores: Measured) -> None:
    """Keep the scores, if the folder can be written, and the newest `MOST_FILES` of the others."""
    sets = {"retain " + name: each for name, each in scores.retained.items()}
    sets |= {} if scores.held_out is None else {"held-out": scores.held_out}
    tensors = {"hits": torch.tensor(scores.hits)}
    for name, each in sets.items():
        tensors |= {f"{name}/logits": each.logits.contiguous(), f"{name}/label": each.label.contiguous()}
    if scores.names is not None:
        tensors["names"] = scores.names.contiguous()
    if sum(each.nbytes for each in tensors.values()) > LARGEST:
        return
    texts = {name: list(each.ids) for name, each in sets.items()}
    metadata = {"ids": json.dumps(texts), "by_sigmoid": json.dumps(scores.by_sigmoid)}
    metadata[CHECKSUM] = _checksum(tensors, metadata)
    with suppress(OSError):
        write_bytes(file, save(tensors, metadata=metadata))
        newest = sorted(file.parent.glob("*.safetensors"), key=lambda each: each.stat().st_mtime)
        for old in newest[:-MOST_FILES]:
            old.unlink(missing_ok=True)


def _read(file: Path) -> Measured | None:
    """The scores in a file; None if there is none, or if it is damaged."""
    try:
        with safe_open(file, "pt") as opened:
            metadata = opened.metadata() or {}
            tensors: dict[str, Tensor] = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        if metadata.pop(CHECKSUM) != _checksum(tensors, metadata):
            return None
        sets = {
            name: Predictions(tensors[f"{name}/logits"], tensors[f"{name}/label"], ids)
            for name, ids in json.loads(metadata["ids"]).items()
        }
        return Measured(
            sets.pop("held-out", None),
            tensors["hits"].tolist(),
            {name.removeprefix("retain "): each for name, each in sets.items()},
            tensors.get("names"),
            json.loads(metadata["by_sigmoid"]),
        )
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        return None


def _checksum(tensors: dict[str, Tensor], metadata: dict[str, str]) -> str:
    return short_hash([tensors_blake2b(tensors), metadata["ids"], metadata["by_sigmoid"]], 16)
