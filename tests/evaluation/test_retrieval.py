"""Retrieval and temperature as a user meets them: `tracer eval` over captions, and what a run says of itself."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from kept import measured, predictions

from tracer.cli.app import main
from tracer.core.metrics import (
    accuracy,
    bootstrap,
    ece,
    mean_interval,
    pair_ranks,
    temperature,
)
from tracer.data.sources import load as load_data
from tracer.evaluation.predict import Scorer
from tracer.evaluation.retrieval import DEPTHS, Retrieval, caption_hits, retrieve
from tracer.models.student import load
from tracer.parallel import World


@pytest.fixture
def captioned(tmp_path: Path) -> Path:
    """Twelve pictures, one to three captions each, one without any."""
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(12, 28, 28, 3), dtype=np.uint8)
    captions = np.array(["\n".join(f"picture {i} seen {j}" for j in range(i % 3 + 1)) for i in range(12)])
    captions[4] = ""
    file = tmp_path / "pictures.npz"
    np.savez(file, images=images, captions=captions)
    return file


def test_recall_of_ranks_is_recall_of_features() -> None:
    generator = torch.Generator().manual_seed(0)
    image, text = torch.randn(20, 8, generator=generator), torch.randn(50, 8, generator=generator)
    owners = torch.arange(50) % 20
    ranks = pair_ranks(image, text, owners, torch.arange(50))
    found = Retrieval(*ranks).recalls()
    for depth in DEPTHS:
        image_to_text, text_to_image = (float((each < depth).double().mean()) for each in ranks)
        assert found[f"image_to_text@{depth}"].value == image_to_text
        assert found[f"text_to_image@{depth}"].value == text_to_image
    assert found["image_to_text@1"].low <= found["image_to_text@1"].value <= found["image_to_text@1"].high


def test_mean_interval_is_the_bootstrap_of_accuracy() -> None:
    generator = torch.Generator().manual_seed(1)
    logits, label = torch.randn(200, 4, generator=generator), torch.randint(4, (200,), generator=generator)
    hits = (logits.argmax(1) == label).double()
    assert mean_interval(hits) == pytest.approx(bootstrap(accuracy, logits, label))


def test_images_without_a_caption_are_left_out(captioned: Path) -> None:
    examples = load_data(captioned)
    student, world = load("tiny-28"), World("cpu")
    found = retrieve(student, Scorer(student, world).embed(examples), world)
    said = [own for own in examples.captions if own]
    assert len(found.image_to_text) == len(said)
    assert len(found.text_to_image) == sum(map(len, said))


def test_a_caption_of_several_images_counts_once_and_any_of_them_is_right(tmp_path: Path) -> None:
    """A model that tells six captions apart without a mistake has found all that there is to find."""
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(6, 28, 28, 3), dtype=np.uint8)
    sizes = {}
    for copies in (1, 5):
        captions = np.array([f"picture {i}" for i in range(6)] * copies)
        np.savez(tmp_path / "p.npz", images=np.concatenate([images] * copies), captions=captions)
        student, world = load("tiny-28"), World("cpu")
        features = Scorer(student, world).embed(load_data(tmp_path / "p.npz"))
        ranks = retrieve(student, features, world)
        sizes[copies] = len(ranks.text_to_image)
        assert caption_hits(student, features, world) == (ranks.image_to_text == 0).tolist()
        recalls = {name: each.value for name, each in ranks.recalls().items() if name.endswith("@1")}
        assert recalls["image_to_text@1"] == np.mean(caption_hits(student, features, world))
    assert sizes == {1: 6, 5: 6}


def test_ranks_of_shared_captions_are_those_of_the_best_match() -> None:
    image = torch.eye(3)[torch.tensor([0, 0, 1, 2])]
    ranks = pair_ranks(image, torch.eye(3), torch.arange(4), torch.tensor([0, 0, 1, 2]))
    assert [each.tolist() for each in ranks] == [[0, 0, 0, 0], [0, 0, 0]]
    turned = pair_ranks(image, torch.eye(3), torch.arange(4), torch.tensor([1, 1, 0, 2]))
    assert (turned[0] > 0).tolist() == [True, True, True, False]
    assert turned[1][2] == 0


def test_eval_shows_retrieval_where_there_are_only_captions(
    captioned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    asked = ["eval", "tiny-28", "--pretrained", "none", "--data", str(captioned), "--device", "cpu"]
    assert main([*asked, "--out", str(out)]) == 0
    rows = measured(out)
    assert set(rows) == {f"{way}@{k}" for way in ("image_to_text", "text_to_image") for k in DEPTHS}
    assert rows["image_to_text@10"].value >= rows["image_to_text@1"].value
    assert "image→text R@1" in capsys.readouterr().out


def test_a_run_fits_its_temperature_and_eval_applies_it(some_digits: Path, tmp_path: Path) -> None:
    run, out, data = tmp_path / "run", tmp_path / "out", str(some_digits)
    tiny = ["--held-out", data, "--model", "tiny-28", "--pretrained", "none", "--device", "cpu"]
    short = ["--steps", "8", "--batch", "16", "--lr", "1e-3", "--out", str(run)]
    assert main(["train", "ft", "--data", data, *tiny, *short]) == 0
    fitted = json.loads((run / "result.json").read_text())["after"]["temperature"]
    asked = ["eval", str(run), "--data", data, "--device", "cpu", "--out", str(out)]
    assert main(asked) == 0
    found = predictions(out)
    assert measured(out)["scaled_ece"].value == pytest.approx(ece(found.logits / fitted, found.label))
    assert temperature(found.logits / fitted, found.label) == pytest.approx(1.0, abs=1e-3), "the same images"


@pytest.mark.parametrize(("images", "texts"), [(1, 1), (5, 6), (6, 5), (10, 30), (12, 11)])
def test_a_depth_that_holds_everything_is_left_out(images: int, texts: int) -> None:
    recalls = Retrieval(torch.zeros(images, dtype=torch.long), torch.zeros(texts, dtype=torch.long)).recalls()
    kept = {("image_to_text", depth) for depth in DEPTHS if depth == 1 or depth < texts}
    kept |= {("text_to_image", depth) for depth in DEPTHS if depth == 1 or depth < images}
    assert set(recalls) == {f"{way}@{depth}" for way, depth in kept}
