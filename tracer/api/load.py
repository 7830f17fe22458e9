"""`tracer.load`: a model to use."""

from __future__ import annotations

from pathlib import Path

from tracer.api.inputs import model_run
from tracer.evaluation.target import exported
from tracer.models.student import Student
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
    run = model_run(model)
    student = exported(str(model), pretrained) if run is None else run.student(weights)
    return student.to(device).eval()
