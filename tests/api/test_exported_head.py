"""A trained classifier stays with its model: in the export, when that is evaluated or loaded, and by its card."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import tracer
from tracer.core.errors import UserError
from tracer.data.embedded.digits import digits
from tracer.runs.run import Run

SETTINGS = {"templates": "the digit {}", "batch": 8, "steps": 2, "augment": "none", "device": "cpu"}


NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def some(split: str) -> tuple[np.ndarray, np.ndarray]:
    """Sixty digits."""
    examples = digits(split).take(np.arange(60))
    return np.stack([np.asarray(examples.images[i]) for i in range(60)]), examples.labels


@pytest.fixture(scope="module")
def pictures() -> tuple[np.ndarray, np.ndarray]:
    """Digits that no run here is trained on."""
    return some("test")


@pytest.fixture(scope="module", params=[True, False], ids=["unit", "plain"])
def probe(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    """A linear probe of a random tower, and its export."""
    home = tmp_path_factory.mktemp("probe")
    run = tracer.finetune(
        some("train"),
        classes=NAMES,
        model="tiny-28",
        method=tracer.methods.lp(solver="lbfgs", unit=request.param),
        pretrained="none",
        out=home / "run",
        **SETTINGS,
    )
    return run, tracer.export(run, home / "model")


def test_it_is_evaluated_and_loaded_with_its_head(
    probe: tuple[Run, Path], pictures: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    run, folder = probe
    student = run.student().eval()
    with torch.no_grad():
        scores = student.classify(student.encode_image(torch.from_numpy(pictures[0]).permute(0, 3, 1, 2)))
    loaded = tracer.load(folder)
    again = tracer.load(tracer.export(loaded, tmp_path / "again"))
    assert again.task == loaded.task == run.task()
    share = float(np.mean(scores.argmax(1).numpy() == pictures[1]))
    for model in (folder, loaded, again):
        found = tracer.evaluate(model, data=pictures, classes=list(loaded.classes_))
        (accuracy,) = [each["accuracy"].value for sets in found.values() for each in sets.values()]
        assert accuracy == pytest.approx(share)
    np.testing.assert_allclose(again.predict_proba(pictures[0]), scores.double().softmax(1), atol=1e-5)


def test_its_classes_may_stand_in_another_order(
    probe: tuple[Run, Path], pictures: tuple[np.ndarray, np.ndarray]
) -> None:
    """The trained classifier answers, in predict and in evaluate; also for some of its classes."""
    model = tracer.load(probe[1])
    names, whole = model.classes_[::-1], model.predict_proba(pictures[0])
    np.testing.assert_allclose(model.predict_proba(pictures[0], names), whole[:, ::-1], atol=1e-12)
    part = whole[:, [7, 2]] / whole[:, [7, 2]].sum(1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(pictures[0], model.classes_[[7, 2]]), part, atol=1e-12)
    turned = pictures[0], [9 - label for label in pictures[1]]
    first, second = (
        tracer.evaluate(model, data=data, classes=list(classes))
        for data, classes in ((pictures, model.classes_), (turned, names))
    )
    (one,), (other,) = first.values(), second.values()
    assert one["data"]["accuracy"] == other["data"]["accuracy"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        ({"classes": ["a", "b", "c"]}, "does not fit: its weights are"),
        ({"classes": {"a": 1}}, "classes cannot be"),
        ({"temperature": 0.0}, "temperature cannot be 0"),
        ({"templates": None}, "templates cannot be"),
        ({"head": None}, "is damaged: head.safetensors is there"),
        ("head.safetensors", "is damaged: head.safetensors is missing"),
        ("task.json", "head.safetensors without task.json"),
    ],
)
def test_a_damaged_head_is_no_other_model(
    probe: tuple[Run, Path], spoil: dict[str, object] | str, message: str, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(probe[1], tmp_path / "model"))
    if isinstance(spoil, str):
        (folder / spoil).unlink()
    else:
        task = json.loads((folder / "task.json").read_text())
        (folder / "task.json").write_text(json.dumps(task | spoil))
    with pytest.raises(UserError, match=message):
        tracer.load(folder)
