"""A model with a logit bias trains, averages, merges, exports and evaluates with it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from closeness import length, same
from torch import nn

from tracer.api.run import Machine, Observer, run
from tracer.core.metrics import ece, sigmoid_ece
from tracer.data.embedded.digits import digits
from tracer.evaluation.predict import Scorer
from tracer.evaluation.score import score_test_sets
from tracer.evaluation.suites.own import own
from tracer.evaluation.suites.shift import Suite
from tracer.merging.wise import interpolate
from tracer.models.export import export
from tracer.models.open_clip_compat import open_clip
from tracer.models.student import Student, initialise_from, load
from tracer.models.trainable import All, ImageTower
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.runs.record import read
from tracer.storage.safetensors_io import read_weights

CONFIG = {
    "embed_dim": 16,
    "init_logit_bias": -10,
    "custom_text": True,
    "vision_cfg": {"image_size": 28, "layers": 2, "width": 32, "head_width": 16, "patch_size": 14},
    "text_cfg": {
        "context_length": 12,
        "vocab_size": 49408,
        "width": 16,
        "heads": 1,
        "layers": 1,
        "no_causal_mask": True,
        "proj_bias": True,
        "pool_type": "last",
    },
}
NAMES = ("zero", "one", "two")


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("siglip") / "sigmoid-minute.json"
    file.write_text(json.dumps(CONFIG))
    return file


@pytest.fixture
def siglip(config: Path) -> Student:
    return load(str(config), seed=1).eval()


@pytest.fixture(scope="module")
def trained(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of three steps of TRACER."""
    folder = tmp_path_factory.mktemp("runs")
    examples = digits("train")
    chosen = np.concatenate([np.flatnonzero(examples.labels == digit)[:8] for digit in range(3)])
    images = np.stack([np.asarray(examples.images[int(i)]) for i in chosen])
    np.savez(folder / "few.npz", images=images, labels=examples.labels[chosen])
    asked = Experiment(
        data=str(folder / "few.npz"),
        method="tracer",
        model=str(config),
        pretrained="none",
        templates="the digit {}",
        steps=3,
        batch=8,
        lr=1e-2,
        precision="fp32",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(open_clip, "IMAGENET_CLASSNAMES", open_clip.IMAGENET_CLASSNAMES[:8])
        run(asked, folder / "run", Machine(device="cpu", workers=0), Observer(warn=lambda message: None))
    return folder / "run"


def bias_of(folder: Path, name: str) -> float:
    return float(read_weights(folder / "weights" / f"{name}.safetensors")["clip.logit_bias"])


def test_training_moves_the_bias_and_the_teacher_averages_it(trained: Path) -> None:
    student, teacher = bias_of(trained, "student"), bias_of(trained, "teacher")
    assert student != -10
    assert min(student, -10) < teacher < max(student, -10)
    logged = [entry["bias"] for entry in read(trained / "log.jsonl") if "bias" in entry]
    assert logged[0] == -10


def test_the_run_reports_the_calibration_of_its_sigmoid(trained: Path) -> None:
    result = json.loads((trained / "result.json").read_text())
    assert all(0 <= result[when]["sigmoid_ece"] <= 1 for when in ("before", "after"))


def test_wise_ft_interpolates_the_bias(trained: Path, siglip: Student) -> None:
    start, end = siglip.state_dict(), read_weights(trained / "weights" / "student.safetensors")
    middle = interpolate(start, end, 0.5)["clip.logit_bias"]
    assert float(middle) == pytest.approx((-10 + bias_of(trained, "student")) / 2)


def test_an_export_keeps_the_bias_and_the_embeddings(trained: Path, siglip: Student, tmp_path: Path) -> None:
    initialise_from(siglip, read_weights(trained / "weights" / "student.safetensors"))
    export(siglip, tmp_path / "model")
    loaded = load(str(tmp_path / "model")).eval()
    assert loaded.bias is not None
    assert float(loaded.bias.detach()) == bias_of(trained, "student")
    images = torch.randint(256, (2, 3, 28, 28), dtype=torch.uint8)
    assert torch.equal(loaded.embed_image(images), siglip.embed_image(images))


def test_zero_shot_logits_have_the_bias_and_their_sigmoid_is_the_probability(siglip: Student) -> None:
    some = digits("test").take(np.arange(9))
    scorer = Scorer(siglip, World("cpu", "fp32"))
    features = scorer.embed(some)
    logits = scorer.score(features, ("{}",), NAMES).logits
    with torch.no_grad():
        text = siglip.embed_text(siglip.tokenise(NAMES))
        expected = siglip.probabilities(features.unit, text)
    same(logits.sigmoid(), expected, length(siglip), size=1)
    assert scorer.by_sigmoid(NAMES)


def test_an_evaluation_measures_the_sigmoid_too(trained: Path, siglip: Student) -> None:
    opened = Suite("own", (own(str(trained.parent / "few.npz"), "id"),)).open()
    ((_, rows, *_),) = score_test_sets(Scorer(siglip, World("cpu", "fp32")), opened)
    assert "sigmoid_ece" in {row.metric for row in rows}


def test_the_confidence_is_the_sigmoid_of_the_largest_logit(siglip: Student) -> None:
    some = digits("test").take(np.arange(30))
    logits = Scorer(siglip, World("cpu", "fp32")).predict(some, ("{}",)).logits
    label = torch.from_numpy(some.labels)
    confidence = 1 / (1 + np.exp(-logits.double().numpy().max(axis=1)))
    correct = logits.argmax(1).numpy() == some.labels
    bins = np.minimum((confidence * 15).astype(int), 14)
    expected = sum(abs((confidence - correct)[bins == b].sum()) for b in range(15)) / len(some)
    assert sigmoid_ece(logits, label) == pytest.approx(expected)
    assert sigmoid_ece(logits, label) != pytest.approx(ece(logits, label))


def test_the_bias_trains_with_the_temperature(siglip: Student) -> None:
    All()(siglip)
    assert siglip.clip.logit_bias.requires_grad
    ImageTower()(siglip)
    assert not siglip.clip.logit_bias.requires_grad


def test_a_clip_has_no_bias(shared_student: Student) -> None:
    assert shared_student.bias is None
    image, text = (nn.functional.normalize(torch.randn(3, 4)) for _ in range(2))
    expected = (shared_student.scale * image @ text.T).softmax(dim=1)
    assert torch.equal(shared_student.probabilities(image, text), expected)
