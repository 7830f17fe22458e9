"""`tracer.export`: write a run as a model that open_clip, transformers or onnxruntime loads, and upload it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from huggingface_hub.utils import validate_repo_id

from tracer.core.errors import UserError, unknown
from tracer.evaluation.model import Model
from tracer.models.adapters import adapter
from tracer.models.download import unreachable_hub
from tracer.models.export import FORMATS as MODEL_FORMATS
from tracer.models.export import export as write_export
from tracer.models.export import own_text_config
from tracer.models.lora import LoRA
from tracer.models.peft_export import export_peft
from tracer.models.student import Student
from tracer.models.task import HEAD_FILE, Task
from tracer.runs.run import Run
from tracer.storage.folders import require_utf8
from tracer.storage.room import require_room
from tracer.training.footprint import model_bytes

FORMATS = (*MODEL_FORMATS, "peft")
APPLIED = "use tracer.load, or the code in README.md"
NOT_APPLIED = {  # said first, of a model with a trained classifier
    "open_clip": f"it answers by a trained classifier ({HEAD_FILE}), which open_clip alone does not apply: {APPLIED}",
    "hf": f"it answers by a trained classifier ({HEAD_FILE}), which transformers alone does not apply: {APPLIED}",
    "peft": "it answers by a trained classifier (other.safetensors), which peft does not apply: export the whole model",
}


def export(
    source: Run | Model | str | Path,
    folder: str | Path | None = None,
    *,
    weights: str | None = None,
    format: str = "open_clip",
    push_to: str | None = None,
    note: Callable[[str], object] | None = None,
) -> Path:
    """Write a run, or a loaded model, as a folder, and return it. A run's folder has its model card as README.md.

    Args:
        source: a run or its folder, or what `tracer.load` returned.
        folder: must not exist or be empty; by default RUN/export/WEIGHTS, with the format if it is not open_clip.
        weights: of a run: result, student, teacher, pretrained or the name of a merge; by default those that the run
            stands for.
        format: open_clip, or hf, which `from_pretrained` of transformers opens; `load` opens both. onnx, a graph of
            images and one of texts; peft, the adapter alone of a run with --adapter, which loads with
            `PeftModel.from_pretrained(open_clip_model, FOLDER)`.
        push_to: the name of a repository of the Hugging Face hub, created as private if it does not exist, to which
            the folder is uploaded. Without it nothing is sent.
        note: called with a sentence on how closely the export computes what the model computes, and on the upload.
    """
    if format not in FORMATS:
        raise unknown("format of an export", format, FORMATS)
    if push_to is not None:
        check_push(push_to)
    say = note or (lambda sentence: None)
    if isinstance(source, Model):
        if folder is None or weights is not None:
            raise UserError("a loaded model is exported with a folder, and without weights=")
        run, student, task, card, target = None, source.student, source.task, None, Path(folder)
        _require_empty(target)
    else:
        run = source if isinstance(source, Run) else Run.open(Path(source))
        name = weights or run.weights
        suffix = "" if format == "open_clip" else f"-{format}"
        target = Path(folder) if folder is not None else run.folder / "export" / f"{name}{suffix}"
        _require_empty(target)
        if folder is None:
            run.require_own_files()
        student, task = run.student(name), run.task(name)
        card = None if format == "peft" else _card(run, name, format, student, task, target, push_to)
    if format != "peft":  # which holds an adapter, a hundredth of the model
        require_room(target, model_bytes(student), "this export", "make room, or choose another folder")
    difference = None
    if student.head is not None and format != "onnx":
        say(NOT_APPLIED[format])
    elif format == "open_clip" and own_text_config(student) is not None and push_to is None:
        say(
            "its text tower is one of transformers: open_clip finds it by the lines in README.md, tracer.load by itself"
        )
    if format == "peft":
        _write_adapter(run, weights, student, target)
    else:
        difference = write_export(
            student, target, format=format, task=task, card=card, repository=push_to, replace=False
        )
    if difference is not None:
        say(f"checked: opened again, its embeddings differ by at most {difference:.1e} from this model's")
    if push_to is not None:
        say(push(target, push_to))
    return target


def _card(
    run: Run, weights: str, format: str, student: Student, task: Task, target: Path, repository: str | None
) -> str:
    """The model card of a run's export into the folder `target`, which may be uploaded to a repository."""
    from tracer.report.model_card import model_card  # the report is slow to import
    from tracer.report.usage import usage

    use = usage(student, task, format, target.resolve().name, repository)
    title, head = repository or target.name, student.head is not None
    return model_card(run.folder, weights, format, title, use, task, head=head)


def _require_empty(folder: Path) -> None:
    """Raise UserError, before any work, if the export cannot be put there."""
    require_utf8(folder)
    if folder.resolve() == Path.cwd():  # it is replaced as a whole, and a shell would stay in the old one
        raise UserError(f"{folder} is the working directory: name a new folder")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not empty: choose another folder")


def _write_adapter(run: Run | None, weights: str | None, student: Student, target: Path) -> None:
    if run is None:
        raise UserError("a loaded model has no adapter of its own: export the run, or the whole model")
    if run.experiment.adapter is None:
        raise UserError(f"{run.folder} was trained without --adapter: export the whole model")
    lora = adapter(run.experiment.adapter)
    if not isinstance(lora, LoRA):
        raise UserError(
            f"{run.folder} was trained with {lora}, and --format peft holds LoRA: use --format onnx"
        )
    from tracer.report.run_data import read_object  # the report is slow to import

    merge = read_object(run.folder / "merges" / f"{weights or run.weights}.json", []) or {}
    export_peft(student, run.student("pretrained"), target, lora.rank, len(merge.get("runs", [run])))


def adapter_lines(run: Run, folder: Path) -> tuple[str, str]:
    """The Python that puts the adapter in `folder` onto the model that the run began with, by peft."""
    quoted = partial(json.dumps, ensure_ascii=False)
    weights = run.experiment.pretrained
    base = quoted(run.experiment.model) + ("" if weights == "auto" else f", {quoted(weights)}")
    return (
        f"model = tracer.load({base}).student.clip",
        f"model = peft.PeftModel.from_pretrained(model, {quoted(str(folder))}).eval()",
    )


def check_push(repository: str) -> None:
    """Raise UserError, before any work, if this cannot be a repository's name or nobody is logged in."""
    try:
        validate_repo_id(repository)
    except HFValidationError:
        raise UserError(f"--push-to {repository}: the name of a repository is OWNER/NAME") from None
    if "/" not in repository:
        raise UserError(f"--push-to {repository}: the name of a repository is OWNER/{repository}")
    if problem := unreachable_hub():
        raise UserError(f"--push-to {repository} needs the network, and {problem}")
    try:
        HfApi().whoami()
    except (HfHubHTTPError, OSError, ValueError):
        raise UserError(f"--push-to {repository} needs a login: run `hf auth login` once") from None


def push(folder: Path, repository: str) -> str:
    """Upload a folder, and return where it is. A repository that does not exist is created as private."""
    api = HfApi()
    try:
        url = api.create_repo(repository, private=True, exist_ok=True)
        api.upload_folder(folder_path=folder, repo_id=repository, commit_message="Upload a model with tracer")
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(
            f"the upload to {repository} failed ({reason:.150}); the export is in {folder}: upload it with "
            f"`hf upload {repository} {folder}`"
        ) from error
    return f"uploaded to {url}; a new repository is private until you publish it there"
