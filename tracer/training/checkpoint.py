"""Checkpoints: folders of safetensors files with checksums, written atomically beside training."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from tracer.core.errors import UserError
from tracer.core.shadow import REMAINDER
from tracer.core.weights import Weights, check_fit
from tracer.models.lora import is_factor
from tracer.models.student import Student
from tracer.parallel.device import free_memory
from tracer.storage.atomic import write_folder
from tracer.storage.checksum import add_checksum, verify_checksum
from tracer.storage.room import FULL
from tracer.storage.safetensors_io import file_blake2b, read_weights, write_weights
from tracer.training.interrupt import Interrupted
from tracer.training.step import State

MAX_CHECKPOINTS = 2
MANIFEST = "manifest.json"
RESERVE = 2  # a copy may take 1/RESERVE of the free memory
DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError, UserError)  # what a damaged file raises
REGULARIZER = "tether"  # name of the regularizer's file in the format of version 0.1


class Checkpoint(NamedTuple):
    """Tensors by owner (student, teacher, optimiser, regularizer) and the counters that belong to them."""

    tensors: dict[str, Weights]
    counters: dict[str, Any]


def capture(state: State) -> Checkpoint:
    """Everything that changes in training, as full tensors and counters, independent of the number of processes."""
    world = state.world
    world.reshard(state.student)
    moments = {
        f"{name}/{key}": value
        for name, parameter in _optimised(state).items()
        for key, value in state.optimiser.state.get(parameter, {}).items()
    }
    tensors = {
        "student": world.full_tensors(changing(state.student, state.student.state_dict())),
        "optimiser": world.full_tensors(moments),
    }
    counters: dict[str, Any] = {"stage_step": state.step}
    if state.shadow:
        shadow = state.shadow.state_dict()
        tensors["teacher"] = world.full_tensors(shadow["model"])
        counters["teacher"] = {"counters": shadow["counters"], "policy": shadow["policy"]}
    if state.regularizer:
        tensors[REGULARIZER] = world.full_tensors(state.regularizer.state_dict())
    return Checkpoint(tensors, counters)


def restore(state: State, checkpoint: Checkpoint) -> None:
    """Load a checkpoint into a newly built state."""
    world, student = state.world, state.student
    expected = changing(student, student.state_dict())
    saved = changing(student, checkpoint.tensors["student"])  # version 0.1 wrote frozen weights too
    weights = world.shard_like(saved, expected)
    check_fit(weights, expected, what="the checkpoint's weights", owner=student.name)
    student.load_state_dict(weights, strict=False)
    _load_optimiser(state, checkpoint.tensors["optimiser"])
    if state.shadow:
        teacher = checkpoint.counters["teacher"]
        like = state.shadow.model.state_dict()
        like |= {name + REMAINDER: tensor for name, tensor in like.items()}
        weights = world.shard_like(checkpoint.tensors["teacher"], like)
        state.shadow.load_state_dict({"model": weights, **teacher})
    if state.regularizer:
        state.regularizer.load_state_dict(checkpoint.tensors[REGULARIZER])
    state.step = checkpoint.counters["stage_step"]


def changing(student: Student, weights: Weights) -> Weights:
    """The weights without frozen ones of the towers, which every start of the run loads from the pretrained model.

    A frozen head stays, because it is computed from data and another machine may round it differently, and so does a
    frozen factor of an adapter, which is drawn at random.
    """
    named = student.clip.named_parameters(prefix="clip", remove_duplicate=False)
    frozen = {name for name, p in named if not p.requires_grad and not is_factor(name)}
    return {name: tensor for name, tensor in weights.items() if name not in frozen}


def save(folder: Path, step: int, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint atomically, then delete all but the last two. Returns its folder.

    Where there is no room for a third, all but the newest that is whole go before.
    """

    def fill(temporary: Path) -> None:
        digests = {}
        for owner, tensors in checkpoint.tensors.items():
            file = temporary / f"{owner}.safetensors"
            write_weights(file, tensors, checksum=False)  # the manifest holds its checksum
            digests[file.name] = file_blake2b(file)
        manifest = {"step": step, "counters": checkpoint.counters, "files": digests}
        (temporary / MANIFEST).write_text(json.dumps(add_checksum(manifest), indent=1))

    target = folder / f"step-{step:09d}"
    try:
        write_folder(target, fill)
    except OSError as error:
        good = next(filter(_whole, newest(folder)), None)
        spare = [place for place in newest(folder) if place != good]
        if error.errno not in FULL or not spare:
            raise
        for place in spare:
            shutil.rmtree(place)
        write_folder(target, fill)
    partial = folder.glob(".step-*")  # left by a process that was killed while writing
    for old in [*newest(folder)[MAX_CHECKPOINTS:], *partial]:
        shutil.rmtree(old)
    return target


def newest(folder: Path) -> list[Path]:
    """The folders of all checkpoints, the newest first."""
    return sorted(folder.glob("step-*"), reverse=True)


class Latest(NamedTuple):
    """A checkpoint read from disk, and messages about newer ones that are damaged."""

    step: int
    checkpoint: Checkpoint
    warnings: tuple[str, ...]


def latest(folder: Path) -> Latest | None:
    """The newest checkpoint whose checksums match; None where there is no checkpoint."""
    warnings: list[str] = []
    for place in newest(folder):
        try:
            return Latest(*_read(place), tuple(warnings))
        except DAMAGE as error:
            warnings.append(f"{place.name} is damaged ({error}); an earlier checkpoint is used")
    if warnings:
        raise UserError(f"no usable checkpoint in {folder}: {'; '.join(warnings)}")
    return None


def _whole(place: Path) -> bool:
    """Whether the files of a checkpoint match their checksums."""
    try:
        return bool(_manifest(place))
    except DAMAGE:
        return False


def _read(place: Path) -> tuple[int, Checkpoint]:
    manifest = _manifest(place)
    tensors = {Path(name).stem: read_weights(place / name) for name in manifest["files"]}
    return manifest["step"], Checkpoint(tensors, manifest["counters"])


def _manifest(place: Path) -> dict[str, Any]:
    """What a checkpoint holds; raises one of DAMAGE if its files do not match their checksums."""
    manifest = verify_checksum((place / MANIFEST).read_text(encoding="utf-8"))
    if manifest.keys() != {"step", "counters", "files"} or f"step-{manifest['step']:09d}" != place.name:
        raise ValueError(f"{MANIFEST} does not belong to this folder")
    for name, expected in manifest["files"].items():
        if Path(name).name != name or not (place / name).is_file():  # a device would be read without an end
            raise ValueError(f"{name} is no file in it")
        if file_blake2b(place / name) != expected:
            raise ValueError(f"{name} does not match its checksum")
    return manifest


def _optimised(state: State) -> dict[str, nn.Parameter]:
    """The parameters of the optimiser by name, in its order."""
    names = {id(parameter): name for name, parameter in state.student.named_parameters()}
    return {names[id(p)]: p for group in state.optimiser.param_groups for p in group["params"]}


def _load_optimiser(state: State, tensors: Weights) -> None:
    parameters, entries = _optimised(state), dict[str, Weights]()
    for path, value in tensors.items():
        name, _, key = path.rpartition("/")
        entries.setdefault(name, {})[key] = value
    if unexpected := sorted(entries.keys() - parameters.keys()):
        raise UserError(f"this optimiser state does not fit the model: it has {unexpected[0]}")
    for name, entry in entries.items():  # all but the step count has the parameter's shape and sharding
        like = dict.fromkeys(entry.keys() - {"step"}, parameters[name])
        entries[name] = state.world.shard_like(entry, like)
    state_dict = state.optimiser.state_dict()
    state_dict["state"] = {index: entries[name] for index, name in enumerate(parameters) if name in entries}
    state.optimiser.load_state_dict(state_dict)  # moves each tensor to the right device


class CheckpointWriter:
    """A context around training in which a thread writes checkpoints, one at a time; its end waits for the last one.

    `begin` returns as soon as the state is copied, or at once if it is `final` and does not change any more. `then`
    writes further files after it. `finish` waits for the disk, raises what went wrong in writing, and has to be called
    before the next `begin`. Where free memory does not suffice for a copy, `begin` writes by itself.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seconds = 0.0  # that the last checkpoint took to write
        self._thread = ThreadPoolExecutor(1)
        self._pending: list[Future[object]] = []

    def __enter__(self) -> CheckpointWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self._thread.shutdown()
        if exception[0] in (None, Interrupted):  # which says that the run is saved
            self.finish()

    @property
    def failed(self) -> bool:
        """Whether `finish` would raise, as far as is known now."""
        return any(each.done() and each.exception() is not None for each in self._pending)

    def begin(self, step: int, checkpoint: Checkpoint, *, final: bool = False) -> None:
        """Copy a checkpoint, if it is not `final`, and begin to write it."""
        if self._pending:
            raise RuntimeError("the checkpoint before is not finished")
        room = free_memory(torch.device("cpu"))
        size = sum(tensor.nbytes for weights in checkpoint.tensors.values() for tensor in weights.values())
        if final or room is None or RESERVE * size <= room:
            self.then(partial(self._write, step, checkpoint if final else _copy(checkpoint)))
        else:
            self._write(step, checkpoint)

    def then(self, write: Callable[[], object]) -> None:
        """Call `write` after what has begun."""
        self._pending.append(self._thread.submit(write))

    def finish(self) -> None:
        """Wait until all is on the disk. Raises OSError if it cannot be written."""
        wait(self._pending)
        pending, self._pending = self._pending, []
        for each in pending:
            each.result()

    def _write(self, step: int, checkpoint: Checkpoint) -> None:
        start = time.monotonic()
        save(self.folder, step, checkpoint)
        self.seconds = time.monotonic() - start


def _copy(checkpoint: Checkpoint) -> Checkpoint:
    tensors = {
        owner: {name: tensor.detach().to("cpu", copy=True) for name, tensor in weights.items()}
        for owner, weights in checkpoint.tensors.items()
    }
    return Checkpoint(tensors, checkpoint.counters)
