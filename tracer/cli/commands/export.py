"""Write a model that other libraries load: `tracer export RUN`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tracer.api.export import adapter_lines, export
from tracer.api.load import call
from tracer.api.terminal import say
from tracer.cli.flags import command
from tracer.runs.run import Run

NEXT = {
    "open_clip": "In Python it names a photograph with (README.md has the same for open_clip alone)",
    "hf": "In Python it names a photograph with (README.md has the same for transformers alone)",
    "onnx": "The Python that names photographs with it is in",
    "peft": "Load it with",
}


@command("tracer export")
def main(
    run: Path,
    /,
    weights: str | None = None,
    format: Literal["open_clip", "hf", "onnx", "peft"] = "open_clip",
    out: Path | None = None,
    push_to: str | None = None,
) -> int:
    """Write the model into a folder, with a model card as README.md.

    Args:
        run: the run's folder.
        weights: result, student, teacher, pretrained, or the name of a merge; by default the result, or what `tracer
            fit` chose.
        format: open_clip; hf (transformers' from_pretrained opens it); onnx (an image and a text graph);
            peft (the adapter alone, of a run with --adapter).
        out: the folder to write; by default RUN/export/WEIGHTS, with -FORMAT if it is not open_clip.
        push_to: upload the folder to this repository of the Hugging Face hub (OWNER/NAME; a new one is private).
    """
    opened = Run.open(run)
    folder = export(opened, out, weights=weights, format=format, push_to=push_to, note=say)
    say(f"written to {folder}. {NEXT[format]}:")
    if format == "peft":
        for line in adapter_lines(opened, folder):
            say(f"  {line}")
    elif format == "onnx":
        say(f"  {folder / 'README.md'}")
    else:
        say(f"  {call(folder, opened.task().classes)}")
    return 0
