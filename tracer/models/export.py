"""Export a model, with its head, as a folder that open_clip and tracer, transformers or onnxruntime can load."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tracer.core.errors import UserError, unknown
from tracer.core.validation import fits
from tracer.models.download import TEXT_FILES
from tracer.models.huggingface.export import write_transformers
from tracer.models.onnx_export import write_onnx
from tracer.models.prompt_tokens import has_prompt
from tracer.models.source import CONFIG_FILE, WEIGHTS_DIGEST, WEIGHTS_FILE
from tracer.models.student import Student, evaluating, initialise_from
from tracer.models.task import HEAD_FILE, TASK_FILE, Task, write_task
from tracer.models.text import text_tower
from tracer.models.tokenizer_files import from_transformers
from tracer.storage.atomic import write_folder, write_json, write_text
from tracer.storage.safetensors_io import file_blake2b, read_weights, write_weights

PIXELS_FILE = "pixels.json"  # how images of more than eight bits are read, if training had such
FORMATS = ("open_clip", "hf", "onnx")
TOLERANCE = 1e-4  # of unit embeddings, and relative to the largest value of other outputs
TEXTS = ["A photo of a small red bird.", "two dogs, one cat", "a"]  # unlike in length, capitals and signs


def export(
    student: Student,
    folder: Path,
    *,
    format: str = "open_clip",
    task: Task | None = None,
    card: str | None = None,
    repository: str | None = None,
    replace: bool = True,
) -> float | None:
    """Write the model in a format, its task and head, if any, and the card, if any, as README.md.

    A model that cannot be written so, or computes something else when it is opened again, is refused and nothing is
    left behind. Returns the largest difference between the outputs of both for sample images and texts; None for
    open_clip's format, which holds the weights as they are. `repository` is the name on the hub where the tokenizer's
    files will be. Without `replace` a folder that has files is refused.
    """
    difference: float | None = None

    def write(temporary: Path) -> None:
        nonlocal difference
        if format == "open_clip":
            _write_open_clip(student, temporary, repository)
        else:
            write_format = write_transformers if format == "hf" else write_onnx
            outputs = write_format(student, temporary, _sample_pixels(student), TEXTS)
            difference = max(relative_difference(own, theirs) for own, theirs in outputs)
            if not difference <= TOLERANCE:
                raise UserError(
                    f"this model cannot be exported as {format}: its embeddings there differ by {difference:.1e}, "
                    f"more than {TOLERANCE:.0e}"
                )
        if task is not None and task.classes:
            if student.head is not None:
                write_weights(temporary / HEAD_FILE, student.head.state_dict())
            write_task(task, temporary, head=student.head is not None)
        if student.white_level is not None:
            write_json(temporary / PIXELS_FILE, {"white_level": student.white_level})
        if card is not None:
            write_text(temporary / "README.md", card)

    if format not in FORMATS:
        raise unknown("format of an export", format, FORMATS)
    if format != "onnx" and has_prompt(student):
        raise UserError(
            f"--format {format} has no place for the learned tokens of --adapter prompts: use --format onnx, or open "
            "the run itself with tracer.load"
        )
    with evaluating(student), torch.no_grad():
        write_folder(folder, write, replace=replace)
    return difference


def _sample_pixels(student: Student) -> Tensor:
    """Normalised pixels of noise, always the same, as many images as there are texts."""
    size: Any = student.preprocess_cfg["size"]
    shape = (size, size) if isinstance(size, int) else size
    return torch.randn(len(TEXTS), 3, *shape, generator=torch.Generator().manual_seed(0))


def relative_difference(own: Tensor, theirs: Tensor) -> float:
    """The largest difference of two outputs, relative to the largest value if that is more than 1; infinite for NaN."""
    a, b = own.detach().cpu().double().squeeze(), theirs.detach().cpu().double().squeeze()
    difference = float((a - b).abs().max() / max(1.0, float(a.abs().max())))
    return math.inf if math.isnan(difference) else difference


def _write_open_clip(student: Student, folder: Path, repository: str | None) -> None:
    """Weights as safetensors, open_clip's config, and the files of a tokenizer and text tower of transformers."""
    write_weights(folder / WEIGHTS_FILE, student.clip.state_dict(), checksum=False)
    text = dict(student.config["text_cfg"])
    tokenizer = student.tokeniser.tokeniser
    if from_transformers(tokenizer):
        tokenizer.tokenizer.save_pretrained(folder)  # where open_clip's `local-dir:` finds it
    if tower_config := own_text_config(student):
        tower_config.save_pretrained(folder)
    for name in TEXT_FILES:
        if not text.get(name) or (name == "hf_tokenizer_name" and not from_transformers(tokenizer)):
            continue
        if repository:  # where open_clip looks for the files of a model of the hub
            text[name] = repository
        elif is_folder(
            text[name]
        ):  # of this machine: from the export's own folder, open_clip finds them by "."
            text[name] = "."
    content = {
        "model_cfg": {**student.config, "text_cfg": text},
        "preprocess_cfg": student.preprocess_cfg,
        WEIGHTS_DIGEST: file_blake2b(folder / WEIGHTS_FILE),
    }
    write_json(folder / CONFIG_FILE, content)


def own_text_config(student: Student) -> Any:
    """The config of a text tower of transformers, which lies beside an export; None for open_clip's own towers."""
    return getattr(text_tower(student.clip), "config", None)


def is_folder(name: str) -> bool:
    """Whether a name of transformers is a folder of this or another machine, not a repository of the hub."""
    return (
        name.startswith((".", "~")) or Path(name).is_absolute() or name.count("/") > 1 or Path(name).is_dir()
    )


def white_level_of(folder: Path) -> float | None:
    """The value that is white in images of more than eight bits, for the model of an export; None if it saw none."""
    file = folder / PIXELS_FILE
    if not file.is_file():
        return None
    try:
        level = json.loads(file.read_text(encoding="utf-8"))["white_level"]
    except (OSError, ValueError, RecursionError, LookupError, TypeError) as error:
        raise UserError(f"the white level cannot be read: {file}: {error}") from error
    if not fits(level, float) or not 0 < level < math.inf:
        raise UserError(f"{file}: the white level is a number above 0, not {level!r:.60}")
    return float(level)


def attach_head(student: Student, folder: Path, task: Task) -> None:
    """Give a student the head in the folder that it was loaded from, whose task this is; nothing if there is none."""
    if not (folder / HEAD_FILE).is_file():
        return
    head = {f"head.{name}": tensor for name, tensor in read_weights(folder / HEAD_FILE).items()}
    shape = list(head["head.weight"].shape) if "head.weight" in head else []
    expected = [len(task.classes), student.config["embed_dim"]]
    if shape != expected:
        raise UserError(
            f"{folder / HEAD_FILE} does not fit: its weights are {shape}, {expected} for the {len(task.classes)} "
            f"classes of {TASK_FILE} and the embeddings of {student.name}"
        )
    initialise_from(student, {**student.state_dict(), **head})
