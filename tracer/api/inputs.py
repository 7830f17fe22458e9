"""What a user may give as data or as a model, turned into the name by which a run knows it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from tracer.core.errors import UserError
from tracer.data.classes import Spec
from tracer.data.formats.memory import is_paths, register
from tracer.evaluation.model import Model
from tracer.models.export import export
from tracer.models.module import from_module
from tracer.models.prompt_tokens import has_prompt
from tracer.runs.run import Run
from tracer.storage.checksum import short_hash
from tracer.storage.lock import lock
from tracer.storage.safetensors_io import tensors_blake2b


def data_name(data: Any, classes: Spec | None = None) -> str:
    """The spec of these data: a path or name as it is, anything else registered under a hash of its content."""
    return os.fspath(data) if isinstance(data, str | os.PathLike) else register(data, classes)


def data_settings(data: Any, classes: Spec | None) -> dict[str, str | None]:
    """The settings `data` and `classes` of an experiment; data in memory hold the names of their classes."""
    in_files = isinstance(data, str | os.PathLike)
    file = os.fspath(classes) if in_files and isinstance(classes, str | os.PathLike) else None
    return {"data": data_name(data, classes), "classes": file}


def data_names(data: Any, classes: Spec | None = None) -> tuple[str, ...]:
    """The specs of one data set, of a list of specs, or of an empty list."""
    specs = isinstance(data, list | tuple) and all(isinstance(each, str | os.PathLike) for each in data)
    return tuple(map(data_name, data)) if specs and not is_paths(data) else (data_name(data, classes),)


def model_run(model: Any) -> Run | None:
    """The run that is given as a model, by itself or by its folder; None if the model is none."""
    if isinstance(model, str | os.PathLike):
        return Run.open(Path(model)) if Run.exists(Path(model)) else None
    return model if isinstance(model, Run) else None


def model_name(model: Any, home: Path) -> str:
    """The name of this model: a name or folder as it is; a run's or a module's weights are written below `home`.

    `model` is a name, a folder, a finished `Run` or its folder, what `tracer.load` returned, a module of open_clip or
    transformers, or a pair of such a module and the name of its config (open_clip), or the folder or repository of its
    processor (transformers).
    The folder that is written is named by a hash of the weights, so that the same model has the same name.
    """
    run = model_run(model)
    if run is not None:
        run.require_finished()
        student = run.student()
        if has_prompt(student):
            raise UserError(
                f"the run {run.folder} cannot be the start of another: the learned tokens of --adapter prompts have no "
                "place in a folder of weights; start from its own --model, or from a run without them"
            )
    elif isinstance(model, str | os.PathLike):
        return os.fspath(model)
    elif isinstance(model, Model):
        student = model.student
    elif isinstance(model, nn.Module):
        student = from_module(model)
    elif isinstance(model, Sequence) and len(model) == 2:
        student = from_module(*model)
    else:
        raise UserError(
            f"a model cannot be a {type(model).__name__}: expected a name, a folder, a run or a module"
        )
    # Weights alone are not the model: two may differ in the activation, or in how they see images.
    whole = [student.config, repr(student.preprocess_cfg), student.white_level]
    folder = home / "models" / short_hash([tensors_blake2b(student.clip.state_dict()), *whole])
    if not folder.exists():
        with lock(folder.with_name(".lock"), wait=True):  # of several processes one writes it
            if not folder.exists():
                export(student, folder)
    return str(folder)
