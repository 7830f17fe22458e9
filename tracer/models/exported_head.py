"""The classification head that an export has beside its model: `head.safetensors` and `classes.json`."""

from __future__ import annotations

import json
from pathlib import Path

from tracer.core.errors import UserError
from tracer.models.student import Student, initialise_from
from tracer.storage.atomic import write_json
from tracer.storage.safetensors_io import read_weights, write_weights

HEAD_FILE, CLASSES_FILE = "head.safetensors", "classes.json"


def write_head(student: Student, folder: Path) -> None:
    """Write the head of a student, if it has one, with the names of its classes."""
    if student.head is not None:
        write_weights(folder / HEAD_FILE, student.head.state_dict())
        write_json(folder / CLASSES_FILE, list(student.classes))


def head_classes(folder: Path) -> tuple[str, ...]:
    """The classes of the head in the folder of an export; none if there is no head, or no names for it."""
    if not (folder / HEAD_FILE).is_file():
        return ()
    file = folder / CLASSES_FILE
    try:
        names = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"the class names of the head cannot be read: {file}: {error}") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UserError(f"{file} must be a list of class names")
    return tuple(names)


def attach_head(student: Student, folder: Path) -> None:
    """Give a student the head in the folder that it was loaded from, if there is one with the names of its classes."""
    if not (classes := head_classes(folder)):
        return
    head = {f"head.{name}": tensor for name, tensor in read_weights(folder / HEAD_FILE).items()}
    shape = list(head["head.weight"].shape) if "head.weight" in head else []
    expected = [len(classes), student.config["embed_dim"]]
    if shape != expected:
        raise UserError(
            f"{folder / HEAD_FILE} does not fit: its weights are {shape}, {expected} for the {len(classes)} classes "
            f"of {CLASSES_FILE} and the embeddings of {student.name}"
        )
    initialise_from(student, {**student.state_dict(), **head})
    student.classes = classes
