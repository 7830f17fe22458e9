"""A student is open_clip's model, to the last bit, and computes what is asked of it and nothing else."""

from __future__ import annotations

import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from closeness import length, same
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor, nn

from tracer.core.batch import Batch, Scene
from tracer.core.errors import UserError
from tracer.core.terms import contrastive
from tracer.data.transforms import Transform
from tracer.models.open_clip_compat import open_clip
from tracer.models.registry import known_models
from tracer.models.student import (
    MAX_LOG_SCALE,
    Head,
    Student,
    initialise_from,
    load,
    read_weights,
)
from tracer.models.towers import Tower, without_projection

TEXTS = ["the digit 3", "a photo of the number 8, badly written", "7"]
VISION = {"image_size": 32, "layers": 1, "width": 32, "head_width": 16, "patch_size": 16}
RESNET = {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8}
TEXT = {"context_length": 16, "vocab_size": 49408, "width": 24, "heads": 2, "layers": 1}


def pictures(count: int, height: int, width: int) -> list[Image.Image]:
    rng = np.random.default_rng(0)
    return [Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8)) for _ in range(count)]


def pixels(count: int, size: int = 28) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8, generator=generator)


def small(kind: type, vision: dict[str, Any], **text: Any) -> Student:
    torch.manual_seed(0)
    clip: Any = kind(embed_dim=16, vision_cfg=dict(vision), text_cfg=TEXT | text)
    size = {"size": clip.visual.image_size}
    open_clip.factory.set_model_preprocess_cfg(clip, asdict(open_clip.transform.PreprocessCfg(**size)))
    return Student(clip, open_clip.SimpleTokenizer(context_length=16), name="small", config={})


@pytest.fixture(scope="module")
def preprocess_val() -> Any:
    known_models()
    return open_clip.create_model_and_transforms("tiny-28")[2]


@torch.no_grad()
@pytest.mark.parametrize(("height", "width"), [(28, 28), (50, 41), (13, 90)])
def test_images_are_embedded_as_open_clip_does(
    shared_student: Student, preprocess_val: Any, height: int, width: int
) -> None:
    clip = shared_student.clip
    images = pictures(3, height, width)
    transform = Transform(shared_student.preprocess_cfg)
    ours = torch.stack([transform(image) for image in images])
    theirs = torch.stack([preprocess_val(image) for image in images])
    assert ours.dtype == torch.uint8
    assert torch.equal(shared_student.embed_image(ours), clip.encode_image(theirs, normalize=True))
    assert torch.equal(shared_student.embed_image(theirs), clip.encode_image(theirs, normalize=True))


@torch.no_grad()
def test_a_student_is_what_open_clip_creates() -> None:
    """Same name, same seed, same call: the same weights, mode and temperature."""
    student = load("tiny-32", seed=11)
    torch.manual_seed(11)
    plain: Any = open_clip.create_model("tiny-32")
    assert all(torch.equal(a, b) for a, b in zip(student.clip.parameters(), plain.parameters(), strict=True))
    tokens = open_clip.get_tokenizer("tiny-32")(TEXTS)
    student.eval()
    plain.eval()
    assert torch.equal(student.embed_text(tokens), plain.encode_text(tokens, normalize=True))
    assert torch.equal(student.scale, plain.logit_scale.exp())


def test_a_seed_makes_a_model_and_disturbs_nobody() -> None:
    torch.manual_seed(4)
    expected = torch.rand(3)
    torch.manual_seed(4)
    first, again, other = (load("tiny-28", seed=seed).clip.visual.conv1.weight for seed in (0, 0, 1))
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@torch.no_grad()
def test_embeddings_have_unit_length(shared_student: Student) -> None:
    seen = shared_student(
        Batch(pixels(4), shared_student.tokeniser(TEXTS), caption=torch.tensor([0, 1, 2, 0]))
    )
    for rows in (seen.image, seen.text):
        same(rows.norm(dim=1), torch.ones(4), sums=128)


def test_nothing_is_computed_that_no_term_needs(student: Student, monkeypatch) -> None:
    student.head = Head(torch.randn(3, 128))

    def forbidden(*args: Any) -> Tensor:
        raise AssertionError("the text tower ran")

    monkeypatch.setattr(student, "embed_text", forbidden)
    batch = Batch(pixels(2), student.tokeniser(TEXTS[:2]))
    seen = student(batch, frozenset())
    assert [name for name, value in seen._asdict().items() if value is not None] == ["image", "scale"]
    seen = student(batch, frozenset({"scores", "projections"}))
    assert seen.text is None
    assert seen.scores is not None
    assert seen.projections is not None
    with pytest.raises(AssertionError, match="text tower"):
        student(batch, frozenset({"text"}))


def test_what_is_missing_is_named(student: Student) -> None:
    with pytest.raises(ValueError, match="batch has none"):
        student(Batch(pixels(2)), frozenset({"text"}))
    with pytest.raises(ValueError, match="no head"):
        student(Batch(pixels(2)), frozenset({"scores"}))


def test_captions_once_have_the_gradient_of_captions_repeated(student: Student) -> None:
    """Each distinct caption is encoded once, and its gradients add up by themselves."""
    images, own = pixels(6), [0, 2, 1, 0, 0, 2]
    distinct = student.tokeniser(TEXTS)
    batches = [Batch(images, distinct, caption=torch.tensor(own)), Batch(images, distinct[own])]
    losses, gradients = [], []
    for batch in batches:
        student.zero_grad()
        loss = contrastive()(Scene(student(batch)))
        loss.backward()
        losses.append(loss.detach())
        gradients.append([p.grad.clone() for p in student.parameters() if p.grad is not None])
    same(losses[0], losses[1], length(student), size=float(student.scale.detach()))
    assert len(gradients[0]) == len(list(student.parameters()))
    same(gradients[0], gradients[1], length(student))


def test_the_temperature_is_clamped_at_a_hundred(student: Student) -> None:
    assert pytest.approx(np.log(100)) == MAX_LOG_SCALE
    student.clip.logit_scale.data.fill_(7.0)
    student.clamp_scale()
    assert float(student.scale.detach()) == pytest.approx(100)
    student.clip.logit_scale.data.fill_(1.0)
    student.clamp_scale()
    assert float(student.clip.logit_scale.detach()) == 1.0


@pytest.mark.parametrize("kind", [open_clip.CLIP, open_clip.CustomTextCLIP], ids=lambda kind: kind.__name__)
def test_image_text_and_temperature_are_all_there_is(kind: type) -> None:
    student = small(kind, VISION)
    parts = [*student.image_tower.parameters(), *student.text_parameters, student.clip.logit_scale]
    assert len(parts) == len({id(p) for p in parts})
    assert {id(p) for p in parts} == {id(p) for p in student.parameters()}


@torch.no_grad()
@pytest.mark.parametrize(
    ("kind", "vision", "text"),
    [
        (open_clip.CLIP, VISION, {}),
        (open_clip.CustomTextCLIP, VISION, {}),
        (open_clip.CustomTextCLIP, VISION, {"proj_bias": True}),
        (open_clip.CLIP, RESNET, {}),
    ],
    ids=["ViT", "custom text", "biased text projection", "ResNet"],
)
def test_projections_are_the_last_linear_maps(
    kind: type, vision: dict[str, Any], text: dict[str, Any]
) -> None:
    """Set to zero they leave the same features for every image and text (their bias), and before they do not."""
    student = small(kind, vision, **text).eval()
    image, tokens = pixels(3, vision["image_size"]), student.tokeniser(TEXTS)

    def spread() -> list[float]:
        features = student.encode_image(image), student.clip.encode_text(student.tokeniser.tokeniser(TEXTS))
        return [float((rows - rows[0]).abs().max()) for rows in features]

    assert min(spread()) > 1e-5
    maps = student.projections
    assert [m.shape[1] for m in maps] == [16, 16]
    assert maps[1].shape[0] == TEXT["width"]
    for matrix in maps:
        matrix.zero_()
    assert max(spread()) == 0
    assert tokens.shape[0] == 3


def test_a_tower_without_projection_says_so() -> None:
    student = small(open_clip.CustomTextCLIP, VISION, proj_type="none", width=16)
    assert student.projections is None
    assert without_projection(student.clip) == ["text"]


def test_projections_carry_a_gradient(student: Student) -> None:
    both = student.projections
    assert both is not None
    image, text = both
    (image.sum() + text.sum()).backward()
    assert student.clip.visual.proj.grad is not None
    assert student.clip.text_projection.grad is not None


def test_weights_come_back_head_and_all(student: Student, tmp_path: Path) -> None:
    student.head = Head(torch.randn(3, 128), scale=100.0)
    save_file(dict(student.state_dict()), tmp_path / "w.safetensors")
    fresh = load("tiny-28", seed=8)
    initialise_from(fresh, read_weights(tmp_path / "w.safetensors"))
    seen = [model(Batch(pixels(2)), frozenset({"scores"})) for model in (student, fresh)]
    for a, b in zip(*seen, strict=True):
        assert torch.equal(a, b) if isinstance(a, Tensor) else a is b


def test_weights_of_another_model_are_refused(student: Student) -> None:
    other = load("tiny-32").state_dict()
    before = student.clip.visual.conv1.weight.clone()
    with pytest.raises(UserError, match=r"do not fit tiny-28: \d+ misfits, e\.g\. clip\."):
        initialise_from(student, dict(other))
    cut = dict(student.state_dict())
    del cut["clip.visual.proj"]
    with pytest.raises(UserError, match=re.escape("1 misfits, e.g. clip.visual.proj")):
        initialise_from(student, cut)
    assert torch.equal(before, student.clip.visual.conv1.weight)


def test_unreadable_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no weights at"):
        read_weights(tmp_path / "none.safetensors")
    (tmp_path / "junk.safetensors").write_bytes(b"junk" * 100)
    with pytest.raises(UserError, match="not a readable safetensors"):
        read_weights(tmp_path / "junk.safetensors")


@torch.no_grad()
def test_a_head_is_linear_over_unit_features() -> None:
    weight, features = torch.randn(3, 4), torch.randn(5, 4)
    unit = features / features.norm(dim=1, keepdim=True)
    same(Head(weight)(features), unit @ weight.T, sums=4)
    same(Head(weight, scale=7.0)(features), 7 * unit @ weight.T, sums=4)
    same(Head(weight, scale=None)(features), features @ weight.T, sums=4)
    assert [name for name, _ in Head(weight, bias=False).named_parameters()] == ["weight"]


def test_a_head_owns_its_weights() -> None:
    weight = nn.Parameter(torch.randn(3, 4))
    head = Head(weight)
    head.weight.data.zero_()
    assert weight.abs().sum() > 0


def test_a_frozen_scale_is_never_clamped() -> None:
    student = load("tiny-28", seed=0)
    scale = math.log(118)  # above the bound of 100, as that of SigLIP SO400M (112)
    student.clip.logit_scale.data.fill_(scale)
    student.clip.logit_scale.requires_grad_(False)
    student.clamp_scale()
    assert float(student.clip.logit_scale) == pytest.approx(scale)


@pytest.mark.parametrize("depth", [1, 2, 4, 7, 12])
def test_five_taps_are_the_tokens_after_each_quarter(depth: int) -> None:
    """Against the blocks run one by one."""
    from tracer.models.open_clip_compat import open_clip

    torch.manual_seed(0)
    tower = open_clip.transformer.VisionTransformer(16, 4, 24, depth, 2, 2.0, output_dim=8).eval()
    pixels = torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        features, taps = Tower("image", tower).five_taps(pixels)
        x = tower._embeds(pixels)
        outputs = [x]
        for block in tower.transformer.resblocks:
            x = block(x)
            outputs.append(x)
        same(features, tower(pixels), length(tower))
    chosen = sorted({0, *(-(-depth * quarter // 4) for quarter in (1, 2, 3, 4))})
    assert len(chosen) == min(5, depth + 1)
    for tap, index in zip(taps, chosen, strict=True):
        same(tap, outputs[index], length(tower))
        assert tap.shape == (2, 17, 24)


def test_five_taps_of_a_resnet_are_its_stem_and_stages() -> None:
    from tracer.models.open_clip_compat import open_clip

    tower = open_clip.modified_resnet.ModifiedResNet([1, 1, 1, 1], 32, 8, image_size=64, width=16).eval()
    with torch.no_grad():
        _, taps = Tower("image", tower).five_taps(torch.randn(2, 3, 64, 64))
    assert [tuple(tap.shape) for tap in taps] == [
        (2, 256, 16),
        (2, 256, 64),
        (2, 64, 128),
        (2, 16, 256),
        (2, 4, 512),
    ]
