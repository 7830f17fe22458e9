"""Write a model as two ONNX graphs, one of images and one of texts, for any number of inputs at once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from tracer.core.errors import UserError
from tracer.models.registry import ONNX_FILE
from tracer.models.student import Student
from tracer.models.tokenizer_files import for_transformers, write_for_transformers
from tracer.parallel.device import elementary_attention
from tracer.storage.atomic import write_json

OPSET = 17


class Graph(nn.Module):
    """Pixels or tokens to unit embeddings, and pixels to the scores of the head too if there is one."""

    def __init__(self, student: Student, kind: Literal["image", "text"]) -> None:
        super().__init__()
        self.student, self.kind = student, kind
        scored = kind == "image" and student.head is not None
        self.outputs = [f"{kind}_features", "scores"] if scored else [f"{kind}_features"]

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        clip = self.student.clip
        features = clip.encode_image(inputs) if self.kind == "image" else clip.encode_text(inputs)
        unit = normalize(features, dim=-1)
        return (unit, self.student.classify(features)) if "scores" in self.outputs else (unit,)


def write_onnx(
    student: Student, folder: Path, pixels: Tensor, texts: Sequence[str]
) -> list[tuple[Tensor, Tensor]]:
    """Write image.onnx, text.onnx and what is needed around them.

    Returns the outputs of the model, in eval mode, and of onnxruntime for these samples, in batches of several sizes.
    """
    try:
        import onnx
        import onnxruntime
    except ImportError as error:
        raise UserError(
            f"--format onnx needs the package {error.name}: pip install 'tracer-clip[onnx]'"
        ) from None
    tokens = student.tokeniser.tokeniser(texts)  # as many as the model's context has
    inputs = ((Graph(student, "image"), "pixels", pixels), (Graph(student, "text"), "tokens", tokens))
    outputs: list[tuple[Tensor, Tensor]] = []
    for graph, input_name, example in inputs:
        file = folder / f"{graph.kind}.onnx"
        example = example.to(student.mean.device)
        _trace(graph, example, input_name, file)
        onnx.checker.check_model(file)
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        for batch in (1, 2, len(texts)):  # the graphs are traced with the last
            theirs = session.run(graph.outputs, {input_name: example[:batch].cpu().numpy()})
            outputs += zip(graph(example[:batch]), map(torch.from_numpy, theirs), strict=True)
    _write_settings(student, folder, tokens.shape[1])
    return outputs


def _trace(graph: Graph, example: Tensor, input_name: str, file: Path) -> None:
    with elementary_attention(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about Python values in the trace: outputs are compared anyway
        try:
            torch.onnx.export(
                graph.eval(),
                (example,),
                str(file),
                input_names=[input_name],
                output_names=graph.outputs,
                dynamic_axes={name: {0: "batch"} for name in (input_name, *graph.outputs)},
                opset_version=OPSET,
                dynamo=False,  # tracing takes a tenth of the time, and needs no further package
            )
        except torch.onnx.errors.OnnxExporterError as error:
            reason = str(error).splitlines()[0][:200]
            raise UserError(f"this model cannot be exported as ONNX ({file.stem} graph): {reason}") from error


def _write_settings(student: Student, folder: Path, context_length: int) -> None:
    """How to make pixels, tokens and logits; and the files of the tokenizer if transformers is there to write them."""
    tokenizer, bias = student.tokeniser.tokeniser, student.bias
    settings: dict[str, Any] = {
        "preprocess_cfg": student.preprocess_cfg,
        "context_length": context_length,
        "logit_scale": float(student.scale.detach()),
        "logit_bias": None if bias is None else float(bias.detach()),
    }
    if for_transformers(tokenizer):
        write_for_transformers(tokenizer, folder)
    else:
        settings["tokenizer"] = "open_clip.SimpleTokenizer"
    write_json(folder / ONNX_FILE, settings)
