"""Where a killed run goes on: atomic folders of safetensors, each file with its digest, the last two kept."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from tracer.core.errors import UserError
from tracer.core.weights import Weights, check_fit
from tracer.storage.atomic import write_folder
from tracer.storage.checksum import add_checksum, verify_checksum
from tracer.storage.safetensors_io import digest, read_weights, write_weights
from tracer.training.step import State

KEPT = 2
MANIFEST = "manifest.json"
REGULARIZER = "tether"  # the name of the regularizer's file, as version 0.1 wrote it


class Checkpoint(NamedTuple):
    """Tensors by owner (student, teacher, optimiser, regularizer) and the counters that belong to them."""

    tensors: dict[str, Weights]
    counters: dict[str, Any]


def capture(state: State) -> Checkpoint:
    """Everything that changes in training, as whole tensors and numbers, however many processes train."""
    world = state.world
    world.reshard(state.student)
    tensors = {
        "student": world.whole(state.student.state_dict()),
        "optimiser": world.whole(_optimiser_tensors(state)),
    }
    counters: dict[str, Any] = {"stage_step": state.step}
    if state.shadow:
        shadow = state.shadow.state_dict()
        tensors["teacher"] = world.whole(shadow["model"])
        counters["teacher"] = {"counters": shadow["counters"], "policy": shadow["policy"]}
    if state.hold:
        tensors[REGULARIZER] = world.whole(state.hold.state_dict())
    return Checkpoint(tensors, counters)


def restore(state: State, checkpoint: Checkpoint) -> None:
    """Put a freshly built state where the checkpoint was taken."""
    world, expected = state.world, state.student.state_dict()
    weights = world.part(checkpoint.tensors["student"], expected)
    check_fit(weights, expected, what="the checkpoint's weights", owner=state.student.name)
    state.student.load_state_dict(weights)
    _load_optimiser(state, checkpoint.tensors["optimiser"])
    if state.shadow:
        teacher = checkpoint.counters["teacher"]
        weights = world.part(checkpoint.tensors["teacher"], state.shadow.model.state_dict())
        state.shadow.load_state_dict({"model": weights, **teacher})
    if state.hold:
        state.hold.load_state_dict(checkpoint.tensors[REGULARIZER])
    state.step = checkpoint.counters["stage_step"]


def save(folder: Path, step: int, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint in one indivisible move, then drop all but the last two."""

    def fill(beside: Path) -> None:
        digests = {}
        for owner, tensors in checkpoint.tensors.items():
            file = beside / f"{owner}.safetensors"
            write_weights(file, tensors, add_checksum=False)  # the manifest holds its digest
            digests[file.name] = digest(file)
        manifest = {"step": step, "counters": checkpoint.counters, "files": digests}
        (beside / MANIFEST).write_text(json.dumps(add_checksum(manifest), indent=1))

    place = folder / f"step-{step:09d}"
    write_folder(place, fill)
    scraps = folder.glob(".step-*")  # what a killed run was writing
    for old in [*sorted(folder.glob("step-*"))[:-KEPT], *scraps]:
        shutil.rmtree(old)
    return place


def latest(folder: Path) -> tuple[int, Checkpoint, list[str]] | None:
    """The newest checkpoint whose digests hold, its step, and what was wrong with newer ones."""
    damaged: list[str] = []
    for place in sorted(folder.glob("step-*"), reverse=True):
        try:
            return *_read(place), damaged
        except (OSError, ValueError, KeyError, TypeError, AttributeError, UserError) as error:
            damaged.append(f"{place.name} is damaged ({error}); an earlier checkpoint is used")
    if damaged:
        raise UserError(f"no usable checkpoint in {folder}: {'; '.join(damaged)}")
    return None


def _read(place: Path) -> tuple[int, Checkpoint]:
    manifest = verify_checksum((place / MANIFEST).read_text(encoding="utf-8"))
    if manifest.keys() != {"step", "counters", "files"} or f"step-{manifest['step']:09d}" != place.name:
        raise ValueError(f"{MANIFEST} is not the one that was written here")
    tensors = {}
    for name, expected in manifest["files"].items():
        if digest(place / name) != expected:
            raise ValueError(f"{name} does not match its digest")
        tensors[Path(name).stem] = read_weights(place / name)
    return manifest["step"], Checkpoint(tensors, manifest["counters"])


def _trained(state: State) -> dict[str, nn.Parameter]:
    """The parameters under the optimiser, by name and in its own order."""
    name = {id(parameter): name for name, parameter in state.student.named_parameters()}
    return {name[id(p)]: p for group in state.optimiser.param_groups for p in group["params"]}


def _optimiser_tensors(state: State) -> Weights:
    return {
        f"{name}/{key}": value
        for name, parameter in _trained(state).items()
        for key, value in state.optimiser.state.get(parameter, {}).items()
    }


def _load_optimiser(state: State, tensors: Weights) -> None:
    trained, entries = _trained(state), dict[str, Weights]()
    for place, value in tensors.items():
        name, _, key = place.rpartition("/")
        entries.setdefault(name, {})[key] = value
    if strangers := sorted(entries.keys() - trained.keys()):
        raise UserError(f"this optimiser state does not fit the model: it has {strangers[0]}")
    for name, entry in entries.items():  # all but the count of steps is shaped, and cut, like the parameter
        entries[name] = state.world.part(entry, dict.fromkeys(entry.keys() - {"step"}, trained[name]))
    packed = state.optimiser.state_dict()
    packed["state"] = {index: entries[name] for index, name in enumerate(trained) if name in entries}
    state.optimiser.load_state_dict(packed)  # torch's own way, which knows the device of each entry
