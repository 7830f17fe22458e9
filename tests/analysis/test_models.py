"""Layers of every kind of tower, similarity of whole models, drift and the straight path."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from closeness import same
from PIL import Image
from torch import Tensor, nn

from tracer.analysis import drift, layer_similarity, run_analysis, task_share
from tracer.analysis.drift import tower_and_layer
from tracer.analysis.layers import layer_outputs, pooled, vision_layers
from tracer.cli import app as cli
from tracer.core.weights import Weights
from tracer.merging.wise import interpolate
from tracer.models.open_clip_compat import open_clip
from tracer.models.student import Student, load
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.runs.run import Run
from tracer.training.loop import Training

# One of each kind: name, layers before the projection, width of the first and last of them.
TOWERS = [
    ("ViT-S-32-alt", 12, (384, 384)),
    ("RN50", 4, (256, 2048)),
    ("convnext_tiny", 4, (96, 768)),
    ("swin_base_patch4_window7_224", 4, (128, 1024)),
    ("EVA02-B-16", 12, (768, 768)),
    ("ViT-B-16-SigLIP", 12, (768, 768)),
    ("MobileCLIP-S1", 4, (64, 512)),
    ("ViTamin-S", 14, (384, 384)),
    ("coca_ViT-B-32", 12, (768, 768)),
    ("PE-Core-T-16-384", 12, (192, 192)),
]


def tower(name: str) -> nn.Module:
    """The vision tower of an architecture without memory or weights."""
    with torch.device("meta"):  # else they are drawn at random first
        return open_clip.create_model(name, device="meta", load_weights=False).visual.eval()


@pytest.mark.parametrize(("name", "layers", "widths"), TOWERS)
def test_every_kind_of_tower_shows_its_layers(name: str, layers: int, widths: tuple[int, int]) -> None:
    visual = tower(name)
    side = visual.image_size[0] if isinstance(visual.image_size, tuple) else visual.image_size
    with layer_outputs(visual) as outputs, torch.no_grad():
        visual(torch.zeros(3, 3, side, side, device="meta"))
    names = list(outputs)
    patches = name != "RN50"  # every other tower makes patches into tokens
    assert (names[0] == "patch embedding") == patches
    assert len(names) == patches + layers + 1
    assert names == list(vision_layers(visual))
    assert names[-1] == "projection"
    assert {len(value) for value in outputs.values()} == {3}
    assert all(value.ndim == 2 for value in outputs.values())
    assert (outputs[names[0]].shape[1], outputs[names[-2]].shape[1]) == widths


def test_pooling_averages_positions_wherever_they_are() -> None:
    tokens = torch.randn(2, 5, 4)
    same(pooled(tokens), tokens.mean(dim=1), sums=5)
    same(pooled(tokens.transpose(0, 1), "second"), tokens.mean(dim=1), sums=5)
    places = torch.randn(2, 4, 3, 3)
    same(pooled(places), pooled(places.permute(0, 2, 3, 1), "last"), sums=9)
    assert torch.equal(pooled((tokens[:, 0], tokens)), tokens[:, 0])


@pytest.fixture(scope="module")
def student() -> Student:
    return load("tiny-28", None, seed=0)


@pytest.fixture
def changed() -> Student:
    """The same student with another third block."""
    other = load("tiny-28", None, seed=0)
    with torch.no_grad():
        for parameter in other.image_tower.transformer.resblocks[2].parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    return other


def batches(count: int = 3) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randint(0, 256, (16, 3, 28, 28), generator=generator, dtype=torch.uint8) for _ in range(count)
    ]


def test_a_model_is_like_itself_and_a_changed_block_shows_from_there_on(
    student: Student, changed: Student
) -> None:
    itself = layer_similarity(student, student, batches())
    blocks = ["block 1", "block 2", "block 3", "block 4"]
    assert [row.layer for row in itself] == ["patch embedding", *blocks, "projection"]
    assert all(row.cka == pytest.approx(1) and row.svcca == pytest.approx(1) for row in itself)
    rows = layer_similarity(student, changed, batches())
    assert all(row.cka == pytest.approx(1) for row in rows[:3])
    assert all(row.cka < 0.999 for row in rows[3:])


def test_measuring_similarity_changes_nothing(student: Student, changed: Student) -> None:
    student.train()
    weights = {name: value.clone() for name, value in student.state_dict().items()}
    layer_similarity(student, changed, batches(1))
    assert student.training
    assert not any(module._forward_hooks for module in student.modules())
    assert all(torch.equal(value, weights[name]) for name, value in student.state_dict().items())


def test_drift_is_zero_but_for_what_moved_and_sums_to_the_whole(student: Student, changed: Student) -> None:
    before, after = dict(student.state_dict()), dict(changed.state_dict())
    rows = drift(before, after)
    assert [(row.tower, row.layer) for row in rows if row.norm > 0] == [("image", "block 3")]
    whole = math.sqrt(sum(float((after[n].double() - before[n].double()).square().sum()) for n in before))
    assert math.sqrt(sum(row.norm**2 for row in rows)) == pytest.approx(whole)
    layers = [row.layer for row in rows if row.tower == "image"]
    assert layers == ["embedding", "block 1", "block 2", "block 3", "block 4", "projection"]


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("clip.visual.conv1.weight", ("image", "embedding")),
        ("clip.visual.transformer.resblocks.10.attn.in_proj_weight", ("image", "block 11")),
        ("clip.visual.layer4.2.conv1.weight", ("image", "stage 4")),
        ("clip.visual.trunk.stages.0.blocks.1.norm.weight", ("image", "stage 1")),
        ("clip.visual.trunk.blocks.3.norm1.weight", ("image", "block 4")),
        ("clip.visual.proj", ("image", "projection")),
        ("clip.visual.attnpool.c_proj.weight", ("image", "projection")),
        ("clip.transformer.resblocks.0.ln_1.weight", ("text", "block 1")),
        ("clip.text.transformer.encoder.layer.5.output.dense.weight", ("text", "block 6")),
        ("clip.text_projection", ("text", "projection")),
        ("clip.token_embedding.weight", ("text", "embedding")),
        ("clip.logit_scale", ("temperature", "logit_scale")),
        ("head.weight", ("head", "head")),
    ],
)
def test_parameters_belong_to_layers(name: str, where: tuple[str, str]) -> None:
    assert tower_and_layer(name) == where


def test_movement_inside_the_span_of_the_classes_is_all_task() -> None:
    classes = torch.randn(3, 10, dtype=torch.float64)
    before = torch.randn(20, 10, dtype=torch.float64)
    inside = torch.randn(20, 3, dtype=torch.float64) @ classes
    complement = torch.linalg.svd(classes).Vh[3:]
    outside = torch.randn(20, 7, dtype=torch.float64) @ complement
    assert task_share(before, before + inside, classes) == pytest.approx((1.0, 0.3))
    assert task_share(before, before + outside, classes) == pytest.approx((0.0, 0.3))
    wanted = float(inside.square().sum() / (inside + outside).square().sum())
    assert task_share(before, before + inside + outside, classes)[0] == pytest.approx(wanted)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes of noise, one of them brighter."""
    folder = tmp_path_factory.mktemp("photos")
    random = np.random.default_rng(0)
    for label, base in (("dark", 0), ("bright", 128)):
        (folder / label).mkdir()
        for i in range(20):
            pixels = random.integers(base, base + 128, (28, 28, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / label / f"{i}.png")
    return folder


@pytest.mark.parametrize("method", ["ft", "tracer"])
def test_the_ends_of_an_analysed_path_are_the_runs_result(
    method: str, photos: Path, minute: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {"data": str(photos), "held_out": str(photos), "retain": (str(photos),), "templates": "name"}
    size = {"model": minute, "pretrained": "none", "steps": 3, "batch": 8, "lr": 1e-3, "augment": "none"}
    made = plan(Experiment(method=method, **data, **size))
    run = Run.create(made, tmp_path / "run")
    Training(made, run, World("cpu", "fp32")).finish()
    assert cli.main(["analyse", str(run.folder), "--stops", "3", "--device", "cpu"]) == 0
    analysis = json.loads((run.folder / "analysis.json").read_text())
    result = json.loads((run.folder / "result.json").read_text())
    path = analysis["path"]
    assert [stop["alpha"] for stop in path] == [0, 0.5, 1]
    for stop, moment in ((path[0], "before"), (path[-1], "after")):
        assert stop["accuracy"] == pytest.approx(result[moment]["accuracy"])
        assert stop["retain"] == pytest.approx(result[moment]["retain"])
        assert analysis["ece"][moment] == pytest.approx(result[moment]["ece"])
    assert {row["tower"] for row in analysis["drift"]} >= {"image", "text", "temperature"}
    assert analysis["samples"] == 40


def test_a_point_of_the_path_does_not_depend_on_those_before_it(
    photos: Path, minute: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = {"data": str(photos), "held_out": str(photos), "templates": "name", "augment": "none"}
    size = {"model": minute, "pretrained": "none", "steps": 1, "batch": 8, "lr": 1e-3}
    settled = plan(Experiment(method="flyp", **data, **size))
    world = World("cpu", "fp32")
    run = Training(settled, Run.create(settled, tmp_path / "run"), world).finish()
    loaded: list[Weights] = []
    load_weights = run_analysis.initialise_from

    def spy(student: Student, weights: Weights) -> None:
        loaded.append({name: tensor.clone() for name, tensor in weights.items()})
        load_weights(student, weights)

    monkeypatch.setattr(run_analysis, "initialise_from", spy)
    alphas = (0, 0.25, 0.5, 1)
    analysis = dict(run_analysis.analyse_run(settled, run, world, samples=40, batch=16, alphas=alphas))
    assert [point["alpha"] for point in analysis["path"]] == list(alphas)
    start, end = (dict(run.student(name).state_dict()) for name in ("pretrained", "result"))
    for alpha, weights in zip(alphas, loaded, strict=True):
        expected = interpolate(start, end, alpha)
        assert all(torch.equal(weights[name], expected[name]) for name in expected)


def test_an_unfinished_run_is_not_analysed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "experiment.json").write_text('{"id": "a", "experiment": {}, "classes": []}')
    assert cli.main(["analyse", str(tmp_path)]) == 2
    assert "not finished" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize("images", [0, 3])
def test_too_few_held_out_images_are_refused_at_once(
    images: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    described = {"id": "a", "experiment": {}, "classes": [], "data": {"held_out": images}}
    (tmp_path / "experiment.json").write_text(json.dumps(described))
    (tmp_path / "result.json").write_text("{}")
    assert cli.main(["analyse", str(tmp_path)]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert f"has {images} held-out images: an analysis needs 4 or more" in told


def test_a_folder_of_runs_is_analysed_run_by_run_and_unfinished_ones_are_skipped(
    photos: Path,
    minute: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_clip, "IMAGENET_CLASSNAMES", open_clip.IMAGENET_CLASSNAMES[:24])
    data = {"data": str(photos), "held_out": str(photos), "templates": "name", "augment": "none"}
    size = {"model": minute, "pretrained": "none", "steps": 1, "batch": 8, "lr": 1e-3}
    for seed in (0, 1):
        made = plan(Experiment(method="flyp", seed=seed, **data, **size))
        Training(made, Run.create(made, tmp_path / str(seed)), World("cpu", "fp32")).finish()
    (tmp_path / "1" / "result.json").unlink()
    assert cli.main(["analyse", str(tmp_path), "--stops", "2", "--device", "cpu"]) == 0
    assert "is skipped" in capsys.readouterr().err.replace("\n", " ")
    assert [file.parent.name for file in tmp_path.glob("*/analysis.json")] == ["0"]
