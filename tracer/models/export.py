"""A run's weights as a folder that open_clip, and tracer, load in one line."""

from __future__ import annotations

from pathlib import Path

import torch

from tracer.models.registry import CONFIG_FILE, WEIGHTS_DIGEST, WEIGHTS_FILE
from tracer.models.student import Student
from tracer.storage.atomic import write_folder, write_json
from tracer.storage.safetensors_io import digest, write_weights


def export(student: Student, folder: Path, classes: list[str] | None = None) -> None:
    """Write safetensors and open_clip's config; a trained head goes beside them with its class names."""

    def fill(beside: Path) -> None:
        write_weights(beside / WEIGHTS_FILE, student.clip.state_dict(), add_checksum=False)
        config = {"model_cfg": student.config, "preprocess_cfg": student.preprocess}
        write_json(beside / CONFIG_FILE, {**config, WEIGHTS_DIGEST: digest(beside / WEIGHTS_FILE)})
        if student.head is not None:
            write_weights(beside / "head.safetensors", student.head.state_dict())
            write_json(beside / "classes.json", classes or [])

    with torch.no_grad():
        write_folder(folder, fill)
