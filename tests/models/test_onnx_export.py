"""ONNX graphs compute what the model computes, for any number of inputs, or are not written."""

from __future__ import annotations

import json
from pathlib import Path

import onnxruntime
import pytest
import torch
from closeness import bound, length, same

from tracer.core.errors import UserError
from tracer.models.export import export, relative_difference
from tracer.models.student import Head, Student
from tracer.models.task import Task, read_task


@pytest.fixture
def classifier(student: Student) -> Student:
    student.head = Head(torch.randn(3, 128, generator=torch.Generator().manual_seed(0)))
    return student


def test_graphs_equal_the_model_for_any_batch(classifier: Student, tmp_path: Path) -> None:
    difference = export(classifier, tmp_path / "out", format="onnx", task=Task(("a", "b", "c")))
    assert difference is not None
    assert difference < bound(length(classifier), dtype=torch.float32)
    assert classifier.training  # as it was
    classifier.eval()
    pixels = torch.rand(5, 3, 28, 28)
    tokens = classifier.tokeniser.tokeniser(["one", "the number two", "3", "x", "y"])
    image, text = (
        onnxruntime.InferenceSession(tmp_path / "out" / f"{name}.onnx") for name in ("image", "text")
    )
    with torch.no_grad():
        expected = classifier.embed_image(pixels), classifier.classify(classifier.encode_image(pixels))
        expected_text = classifier.embed_text(tokens)
    for own, theirs in zip(expected, image.run(None, {"pixels": pixels.numpy()}), strict=True):
        same(own, theirs, length(classifier))
    (features,) = text.run(None, {"tokens": tokens.numpy()})
    same(expected_text, features, length(classifier))
    settings = json.loads((tmp_path / "out" / "onnx_config.json").read_text())
    assert settings["context_length"] == tokens.shape[1]
    assert settings["logit_scale"] == pytest.approx(float(classifier.scale.detach()))
    assert (tmp_path / "out" / "tokenizer.json").is_file()
    assert read_task(tmp_path / "out") == Task(("a", "b", "c"))


@pytest.mark.parametrize(("theirs", "said"), [(2e-4, "2.0e-04"), (float("nan"), "inf")])
def test_an_export_that_differs_is_refused(
    theirs: float, said: str, student: Student, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(student: Student, folder: Path, *samples: object) -> list[tuple[torch.Tensor, torch.Tensor]]:
        (folder / "image.onnx").touch()
        return [(torch.ones(2), torch.ones(2)), (torch.zeros(2), torch.tensor([0, theirs]))]

    monkeypatch.setattr("tracer.models.export.write_onnx", write)
    with pytest.raises(UserError, match=f"differ by {said}, more than 1e-04"):
        export(student, tmp_path / "out", format="onnx")
    assert list(tmp_path.iterdir()) == []


def test_nan_counts_as_a_difference() -> None:
    unit = torch.ones(2)
    assert relative_difference(unit, unit * float("nan")) == float("inf")
    assert relative_difference(unit * 100, unit * 101) == pytest.approx(0.01)
