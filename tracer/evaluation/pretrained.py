"""What the pretrained model scores before training, kept in the user's cache folder for further runs on the same data.

A file holds for the same weights, config, data, prompts, versions and machine, so that numbers do not depend on whether
it is there. Losing it costs time and nothing else.
"""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from pathlib import Path

import torch
from safetensors.torch import save

from tracer.core.errors import UserError
from tracer.evaluation import measured
from tracer.evaluation.measured import Measured, measure
from tracer.evaluation.predict import Scorer
from tracer.evaluation.probe import emoji_probe
from tracer.measure.answers import Predictions
from tracer.models.student import Student
from tracer.parallel import World
from tracer.runs.identity import content
from tracer.runs.plan import Plan
from tracer.storage.atomic import write_bytes
from tracer.storage.cache import cache_folder
from tracer.storage.checksum import short_hash
from tracer.storage.provenance import commit, versions
from tracer.storage.safetensors_io import CHECKSUM, read_weights, tensors_blake2b

LARGEST = 2**26  # bytes of a file; larger ones are not kept
MOST_FILES = 64
RETAIN = "retain "  # before the name of a retained set


def measure_pretrained(plan: Plan, world: World, model: Student, workers: int | None = None) -> Measured:
    """What `model` scores on the data of the plan; read from the cache, if it is there. `model` is not changed."""
    file = _file(plan, world)
    if file is not None and (known := _read(file, plan)) is not None:
        by_sigmoid = Scorer(model, world, plan.train.classes).by_sigmoid(plan.held_out.classes)
        return known._replace(by_sigmoid=by_sigmoid)
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
    tensors = {f"{RETAIN}{name}": each.logits.contiguous() for name, each in scores.retained.items()}
    tensors["hits"] = torch.tensor(scores.hits)
    if scores.held_out is not None:
        tensors["held-out"] = scores.held_out.logits.contiguous()
    if scores.names is not None:
        tensors["names"] = scores.names.contiguous()
    if sum(each.nbytes for each in tensors.values()) > LARGEST:
        return
    with suppress(OSError):
        write_bytes(file, save(tensors, metadata={CHECKSUM: tensors_blake2b(tensors)}))
        newest = sorted(file.parent.glob("*.safetensors"), key=lambda each: each.stat().st_mtime)
        for old in newest[:-MOST_FILES]:
            old.unlink(missing_ok=True)


def _read(file: Path, plan: Plan) -> Measured | None:
    """The scores in a file of this plan; None if there is none, or if it is damaged."""
    try:
        tensors = read_weights(file)
        hits = tensors["hits"].tolist()
    except (UserError, KeyError):
        return None
    retain = plan.retain or (emoji_probe(plan.steps * plan.batch),)
    sets = {"held-out": plan.held_out} | {f"{RETAIN}{data.name}": data for data in retain}
    known = {
        name: Predictions(tensors[name], torch.from_numpy(data.labels), data.ids)
        for name, data in sets.items()
        if name in tensors
    }
    held_out = known.pop("held-out", None)
    retained = {name.removeprefix(RETAIN): each for name, each in known.items()}
    return Measured(held_out, hits, retained, tensors.get("names"))
