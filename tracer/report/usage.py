"""The code on a model card: how the model in a folder names photographs, with tracer and without."""

from __future__ import annotations

import json
from typing import Any

from tracer.models.export import own_text_config
from tracer.models.huggingface.processor import RESAMPLING
from tracer.models.student import Student
from tracer.models.task import Task
from tracer.models.tokenizer_files import for_transformers
from tracer.report.templates import environment

LIBRARIES = {"open_clip": "open_clip", "hf": "transformers", "onnx": "onnxruntime"}


def usage(student: Student, task: Task, format: str, folder: str, repository: str | None = None) -> str:
    """The section `Use` of a card, in Markdown: Python that gives the numbers of the card as it stands there.

    It reads the export in `folder`, relative to where it is run, or from the `repository` of the hub, and names every
    photograph in a folder `photos`.
    """
    preprocess: dict[str, Any] = student.preprocess_cfg
    size = preprocess["size"]
    sides = {size} if isinstance(size, int) else set(size)
    interpolation = preprocess.get("interpolation", "bicubic")
    mode = preprocess.get("resize_mode", "shortest")
    by_hand = mode in ("shortest", "squash") and len(sides) == 1 and interpolation in RESAMPLING.values()
    return (
        environment()
        .get_template("usage.md.j2")
        .render(
            format=format,
            library=LIBRARIES[format],
            folder=json.dumps(folder),
            repository=json.dumps(repository) if repository else "",
            classes=task.classes,
            head=student.head,
            own_text=own_text_config(student) is not None,
            length=student.config["text_cfg"].get("context_length", 77),
            hub_tokenizer=for_transformers(student.tokeniser.tokeniser),
            by_hand=mode if by_hand else "",
            size=max(sides),
            interpolation=interpolation.upper(),
        )
    )
