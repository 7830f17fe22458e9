"""`tracer.export`: write a run as a model that open_clip loads."""

from __future__ import annotations

from pathlib import Path

from tracer.core.errors import UserError, unknown
from tracer.models.export import export as write_export
from tracer.models.student import Student
from tracer.runs.run import Run

FORMATS = ("open_clip",)


def export(
    source: Run | Student | str | Path,
    folder: str | Path | None = None,
    *,
    weights: str | None = None,
    format: str = "open_clip",
) -> Path:
    """Write a run, or a loaded model, as safetensors with its config, and return the folder.

    Args:
        source: a run or its folder, or what `tracer.load` returned.
        folder: must not exist or be empty; by default RUN/export/WEIGHTS.
        weights: of a run: result, student, teacher, pretrained or the name of a merge; by default those that the run
            stands for.
        format: open_clip, whose folder loads with `open_clip.create_model("local-dir:FOLDER")`.
    """
    if format not in FORMATS:
        raise unknown("format of an export", format, FORMATS)
    if isinstance(source, Student):
        if folder is None or weights is not None:
            raise UserError("a loaded model is exported with a folder, and without weights=")
        student, classes, target = source, None, Path(folder)
    else:
        run = source if isinstance(source, Run) else Run.open(Path(source))
        name = weights or run.weights
        student, classes = run.student(name), run.description["classes"]
        target = Path(folder) if folder is not None else run.folder / "export" / name
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError(f"{target} is not empty: choose another folder")
    write_export(student, target, classes)
    return target
