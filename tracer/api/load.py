"""`tracer.load`: a model to use."""

from __future__ import annotations

import os
from pathlib import Path

from tracer.models.exported_head import attach_head
from tracer.models.registry import pretrained_tag
from tracer.models.student import Student
from tracer.models.student import load as load_student
from tracer.runs.run import Run


def load(
    model: str | Path | Run, pretrained: str = "auto", *, weights: str | None = None, device: str = "cpu"
) -> Student:
    """A model in eval mode, with `embed_image`, `embed_text`, `preprocess` and `tokenise`.

    One with a classification head, from a run or an export, has `classify(encode_image(preprocess(images)))` too.

    Args:
        model: a folder that `export`, open_clip or transformers wrote, a run or its folder, a name of open_clip, or
            hf-hub:NAME.
        pretrained: weights for a name: a tag of open_clip, a file, or none.
        weights: of a run: result, student, teacher, pretrained or the name of a merge.
        device: where to put it.
    """
    run = model if isinstance(model, Run) else Run.open(Path(model)) if Run.exists(Path(model)) else None
    if run is not None:
        student = run.student(weights or run.weights)
    else:
        name = os.fspath(model) if not isinstance(model, Run) else ""
        student = load_student(name, pretrained_tag(name, pretrained))
        attach_head(student, Path(name))
    return student.to(device).eval()
