"""A run's weights as a folder that open_clip, and tracer, load in one line."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file

from tracer.atomic import write_folder, write_json
from tracer.model import Student
from tracer.zoo import CONFIG_FILE, WEIGHTS_FILE


def export(student: Student, folder: Path, classes: list[str] | None = None) -> None:
    """Write safetensors and open_clip's config; a trained head goes beside them with its class names."""

    def fill(beside: Path) -> None:
        tensors = {
            name: tensor.detach().cpu().contiguous() for name, tensor in student.clip.state_dict().items()
        }
        save_file(tensors, beside / WEIGHTS_FILE, metadata={"format": "pt"})
        write_json(beside / CONFIG_FILE, {"model_cfg": student.config, "preprocess_cfg": student.preprocess})
        if student.head is not None:
            head = {name: tensor.detach().cpu() for name, tensor in student.head.state_dict().items()}
            save_file(head, beside / "head.safetensors")
            write_json(beside / "classes.json", classes or [])

    with torch.no_grad():
        write_folder(folder, fill)
