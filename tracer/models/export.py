"""Export a model as a folder that open_clip and tracer, transformers or onnxruntime can load."""

from __future__ import annotations

from pathlib import Path

import torch

from tracer.core.errors import UserError, unknown
from tracer.models.exported_head import write_head
from tracer.models.huggingface.export import write_transformers
from tracer.models.onnx_export import write_onnx
from tracer.models.parity import check_parity
from tracer.models.prompt_tokens import has_prompt
from tracer.models.source import CONFIG_FILE, WEIGHTS_DIGEST, WEIGHTS_FILE
from tracer.models.student import Student
from tracer.models.text import text_tower
from tracer.models.tokenizer_files import from_transformers
from tracer.storage.atomic import write_folder, write_json, write_text
from tracer.storage.safetensors_io import file_blake2b, write_weights

FORMATS = ("open_clip", "hf", "onnx")


def export(
    student: Student,
    folder: Path,
    *,
    format: str = "open_clip",
    card: str | None = None,
    repository: str | None = None,
    replace: bool = True,
) -> float | None:
    """Write the model in a format, the head, if any, with its class names, and the card, if any, as README.md.

    A model that cannot be written so, or computes something else when it is opened again, is refused and nothing is
    left behind. Returns the largest difference between the embeddings of both; None for open_clip's format, which holds
    the weights as they are. `repository` is the name on the hub where the tokenizer's files will be.
    Without `replace` a folder that has files is refused.
    """
    difference: float | None = None

    def write(temporary: Path) -> None:
        nonlocal difference
        if format == "open_clip":
            _write_open_clip(student, temporary, repository)
        else:
            difference = (write_transformers if format == "hf" else write_onnx)(student, temporary)
            check_parity(difference, format)
        write_head(student, temporary)
        if card is not None:
            write_text(temporary / "README.md", card)

    if format not in FORMATS:
        raise unknown("format of an export", format, FORMATS)
    if format != "onnx" and has_prompt(student):
        raise UserError(
            f"--format {format} has no place for the learned tokens of --adapter prompts: use --format onnx, or open "
            "the run itself with tracer.load"
        )
    with torch.no_grad():
        write_folder(folder, write, replace=replace)
    return difference


def _write_open_clip(student: Student, folder: Path, repository: str | None) -> None:
    """Weights as safetensors, open_clip's config, and the files of a tokenizer and text tower of transformers."""
    write_weights(folder / WEIGHTS_FILE, student.clip.state_dict(), checksum=False)
    config = student.config
    tokenizer = student.tokeniser.tokeniser
    if from_transformers(tokenizer):
        tokenizer.tokenizer.save_pretrained(folder)  # where open_clip's `local-dir:` finds it
        if repository:  # where open_clip looks for the tokenizer of a model of the hub
            config = {**config, "text_cfg": {**config["text_cfg"], "hf_tokenizer_name": repository}}
    if tower_config := getattr(text_tower(student.clip), "config", None):
        tower_config.save_pretrained(folder)
    content = {"model_cfg": config, "preprocess_cfg": student.preprocess_cfg}
    write_json(folder / CONFIG_FILE, {**content, WEIGHTS_DIGEST: file_blake2b(folder / WEIGHTS_FILE)})
