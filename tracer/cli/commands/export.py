"""Write a model that other libraries load: `tracer export RUN`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from tracer.api.export import export
from tracer.api.terminal import say
from tracer.cli.flags import command
from tracer.runs.run import Run

LOADING = {  # a function, its first argument, and what follows it
    "open_clip": ("open_clip.create_model(", "local-dir:{folder}", ")"),
    "hf": ("transformers.AutoModel.from_pretrained(", "{folder}", ")"),
    "onnx": ("onnxruntime.InferenceSession(", "{folder}/image.onnx", ")  # and text.onnx"),
    "peft": ("peft.PeftModel.from_pretrained(open_clip_model, ", "{folder}", ")"),
}


@command("tracer export")
def main(
    run: Path,
    /,
    weights: str = "result",
    format: Literal["open_clip", "hf", "onnx", "peft"] = "open_clip",
    out: Path | None = None,
    push_to: str | None = None,
) -> int:
    """Write the model into a folder, with a model card as README.md.

    Args:
        run: the run's folder.
        weights: result, student, teacher, pretrained, or the name of a merge.
        format: open_clip; hf (transformers' from_pretrained opens it); onnx (an image and a text graph);
            peft (the adapter alone, of a run with --adapter).
        out: the folder to write; by default RUN/export/WEIGHTS, with -FORMAT if it is not open_clip.
        push_to: upload the folder to this repository of the Hugging Face hub (OWNER/NAME; a new one is private).
    """
    folder = export(Run.open(run), out, weights=weights, format=format, push_to=push_to, note=say)
    say(f"written to {folder}. Load it with:")
    function, argument, rest = LOADING[format]
    say(f"  {function}{json.dumps(argument.format(folder=folder), ensure_ascii=False)}{rest}")
    return 0
