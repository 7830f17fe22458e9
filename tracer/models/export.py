"""Export a model as a folder that open_clip and tracer can load."""

from __future__ import annotations

from pathlib import Path

import torch

from tracer.models.registry import CONFIG_FILE, WEIGHTS_DIGEST, WEIGHTS_FILE
from tracer.models.student import Student
from tracer.storage.atomic import write_folder, write_json
from tracer.storage.safetensors_io import file_blake2b, write_weights


def export(student: Student, folder: Path, classes: list[str] | None = None) -> None:
    """Write weights as safetensors and open_clip's config, and the head, if any, with its class names."""

    def write(temporary: Path) -> None:
        write_weights(temporary / WEIGHTS_FILE, student.clip.state_dict(), checksum=False)
        config = {"model_cfg": student.config, "preprocess_cfg": student.preprocess_cfg}
        write_json(
            temporary / CONFIG_FILE, {**config, WEIGHTS_DIGEST: file_blake2b(temporary / WEIGHTS_FILE)}
        )
        if student.head is not None:
            write_weights(temporary / "head.safetensors", student.head.state_dict())
            write_json(temporary / "classes.json", classes or [])

    with torch.no_grad():
        write_folder(folder, write)
