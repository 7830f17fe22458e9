"""`tracer.load`: a model to use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tracer.api.inputs import model_run
from tracer.core.errors import UserError
from tracer.evaluation.model import Model
from tracer.evaluation.target import NO_RUN, beside, exported
from tracer.models.task import read_task
from tracer.runs.run import Run


def load(
    model: str | Path | Run, pretrained: str = "auto", *, weights: str | None = None, device: str = "cpu"
) -> Model:
    """A model that answers as `tracer eval` measures it: `load(X).predict("photo.jpg")`.

    Args:
        model: a run or its folder, `best` of `tracer fit`, a folder that `export`, open_clip or transformers wrote, a
            name of open_clip, or hf-hub:NAME.
        pretrained: weights for a name: a tag of open_clip, a file, or none.
        weights: of a run: result, student, teacher, pretrained or the name of a merge.
        device: where it computes: auto, cpu, cuda or mps.
    """
    run = model_run(model)
    if run is None:
        if weights is not None:
            raise UserError(NO_RUN)
        name = str(model)
        return Model(exported(name, pretrained), read_task(beside(name)), device)
    return Model(run.student(weights), run.task(weights), device)


def call(folder: Path, classes: Sequence[str]) -> str:
    """The Python that names a photograph with the model in `folder`; without classes of its own, out of two words."""
    words = "" if classes else ', classes=["a cat", "a dog"]'
    return f'tracer.load({json.dumps(str(folder), ensure_ascii=False)}).predict("photo.jpg"{words})'
