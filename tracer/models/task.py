"""The task that a model was finetuned for: class names, prompts and temperature, written beside an export."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

from tracer.core.errors import UserError
from tracer.core.validation import fits
from tracer.storage.atomic import write_json

TASK_FILE, HEAD_FILE = "task.json", "head.safetensors"  # beside the model


@dataclass(frozen=True)
class Task:
    """What a model names: its classes, in the order of its head if it has one, and the prompts that they stand in."""

    classes: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    asked: bool = False  # whether the templates were asked for: then other classes are put into them too
    temperature: float | None = (
        None  # by which scores are divided, fitted on held-out images of these classes
    )

    def templates_for(self, classes: tuple[str, ...]) -> tuple[str, ...]:
        """The prompts in which the model is asked for these classes; none: those of the data, else OpenAI's."""
        return self.templates if self.asked or (classes and set(classes) <= set(self.classes)) else ()


def write_task(task: Task, folder: Path, *, head: bool) -> None:
    """Write a task into the folder of an export; `head` says that a trained classifier lies beside it."""
    write_json(folder / TASK_FILE, asdict(task) | {"head": HEAD_FILE if head else None})


def read_task(folder: Path) -> Task:
    """The task in the folder of an export; an empty one if it has none. Raises UserError if it is damaged."""
    file, head = folder / TASK_FILE, folder / HEAD_FILE
    if not file.is_file():
        if head.is_file():
            raise UserError(
                f"{folder} holds {HEAD_FILE} without {TASK_FILE}, the names of its classes: export it again"
            )
        return Task()
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{file} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise UserError(f"{file} must be an object, and is a {type(content).__name__}")
    for name, kind in {
        "classes": list[str],
        "templates": list[str],
        "asked": bool,
        "temperature": float | None,
    }.items():
        if name not in content or not fits(content[name], kind):
            raise UserError(f"{file}: {name} cannot be {content.get(name)!r:.60}")
    temperature = content["temperature"]
    if temperature is not None and not 0 < temperature < math.inf:
        raise UserError(f"{file}: temperature cannot be {temperature}")
    if (content.get("head") is not None) != head.is_file():
        state = (
            "is missing" if content.get("head") is not None else f"is there, and {TASK_FILE} does not name it"
        )
        raise UserError(f"{folder} is damaged: {HEAD_FILE} {state}")
    return Task(tuple(content["classes"]), tuple(content["templates"]), content["asked"], temperature)
