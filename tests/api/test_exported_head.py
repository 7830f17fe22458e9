"""A trained classifier stays with its model: in the export, when that is evaluated or loaded, and by its card."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import tracer
from tracer.core.errors import UserError
from tracer.data.embedded.digits import digits
from tracer.models.student import Head, Student
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
    features = student.encode_image(torch.from_numpy(pictures[0]).permute(0, 3, 1, 2))
    loaded = tracer.load(folder)
    assert torch.equal(loaded.classify(features), student.classify(features))
    again = tracer.load(tracer.export(loaded, tmp_path / "again"))
    assert again.classes == loaded.classes == tuple(run.description["classes"])
    share = float(np.mean(student.classify(features).argmax(1).numpy() == pictures[1]))
    for model in (folder, loaded, again):
        scores = tracer.evaluate(model, data=pictures, classes=list(loaded.classes))
        (accuracy,) = [each["accuracy"].value for sets in scores.values() for each in sets.values()]
        assert accuracy == pytest.approx(share)


def test_the_lines_of_the_card_apply_it(
    probe: tuple[Run, Path], pictures: tuple[np.ndarray, np.ndarray]
) -> None:
    run, folder = probe
    blocks = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), flags=re.DOTALL)
    code = "\n".join(blocks).replace("FOLDER", str(folder)).replace("print(", "answers.append(")
    student, answers = run.student().eval(), []
    for picture in pictures[0][:3]:
        image = Image.fromarray(picture)
        with torch.no_grad():
            exec(code, {"image": image, "answers": answers})
            scores = student.classify(student.encode_image(student.preprocess(image)))
        assert answers[-1] == run.description["classes"][int(scores.argmax())]


def test_a_head_that_does_not_fit_is_refused(probe: tuple[Run, Path], tmp_path: Path) -> None:
    student: Student = probe[0].student()
    student.head, student.classes = Head(torch.zeros(3, 5)), ("a", "b", "c")
    tracer.export(student, tmp_path / "model")
    with pytest.raises(UserError, match=r"does not fit: its weights are \[3, 5\]"):
        tracer.load(tmp_path / "model")
    (tmp_path / "model" / "classes.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(UserError, match="list of class names"):
        tracer.load(tmp_path / "model")
