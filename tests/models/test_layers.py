"""Layers that are looked for by name or kind: every one is found in every family, and one that is not known is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import open_clip_next
import pytest
import timm
import torch
from models import families
from models.families import FAMILIES, build, shrunk_trunks
from torch import nn

from tracer.analysis.drift import tower_and_layer
from tracer.core.errors import UserError
from tracer.models.acceleration import save_memory
from tracer.models.attention import packed
from tracer.models.huggingface.architecture import set_trunk_activation, trunk_activation
from tracer.models.huggingface.keys import to_transformers
from tracer.models.lora import LoRA, adapted_weight
from tracer.models.prefix import share_prefix
from tracer.models.student import load
from tracer.models.towers import Tower
from tracer.models.trainable import ImageTower, towers

HUGGING_FACE = [name for name, family in FAMILIES.items() if family.hugging_face]

CONVOLUTIONAL = ("OpenAI ResNet", "ConvNeXt")  # without attention in the image tower
RATES = (
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout_rate"),
    *("dropout", "attention_dropout", "activation_dropout"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    pytest.importorskip("transformers")
    with shrunk_trunks():
        yield tmp_path_factory.mktemp("families")


@pytest.mark.parametrize("name", FAMILIES)
def test_every_layer_of_a_family_is_found(name: str, folder: Path) -> None:
    student = build(name, folder)
    names = {id(p): key for key, p in student.named_parameters()}
    adapted = {
        kind: {id(adapted_weight(layer)) for layer in LoRA(rank=2, layers=kind).targets(student).values()}
        for kind in ("attention", "mlp")
        if name not in CONVOLUTIONAL
    }
    for tower in student.towers:
        blocks = tower.blocks
        assert blocks
        assert tower.unplaced == []
        assert tower.input_parameters
        for at, block in blocks.items():
            parameters = list(block.parameters())
            assert {tower_and_layer(names[id(p)]) for p in parameters} == {(tower.kind, at)}
            if at.startswith("block"):  # stages may be convolutions
                assert all(any(id(p) in each for p in parameters) for each in adapted.values())
    for choice in ("norms", "last-1"):
        towers(choice)(student)
        assert student.text_frozen is False
        assert any(p.requires_grad for p in student.image_tower.parameters())


@pytest.mark.parametrize("name", FAMILIES)
def test_checkpointing_recomputes_both_towers_or_is_refused(name: str, folder: Path) -> None:
    student, calls = build(name, folder).train(), Counter[str]()
    if name == "OpenAI ResNet":
        with pytest.raises(UserError, match="cannot recompute the image tower of OpenAI-ResNet"):
            save_memory(student, checkpointing=True)
        return
    save_memory(student, checkpointing=True)
    for tower in student.towers:
        block = next(iter(tower.blocks.values()))
        layer = next(part for part in block.modules() if not [*part.children()] and [*part.parameters()])
        layer.register_forward_hook(lambda *_, kind=tower.kind: calls.update([kind]))
    output = student(families.batch(student))
    assert output.text is not None
    (output.image.sum() + output.text.sum()).backward()
    assert calls == {"image": 2, "text": 2}


@pytest.mark.parametrize(
    ("name", "rate"), [*((name, rate) for name in HUGGING_FACE for rate in (0.0, 0.1)), ("CoCa", 0.0)]
)
def test_frozen_blocks_of_a_text_tower_are_shared_where_they_are_constant(
    name: str, rate: float, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three blocks, so that some hand on what a block of transformers returns beside its output."""
    family, dropout = FAMILIES[name], dict.fromkeys(RATES, rate)
    deeper = dict.fromkeys(("num_hidden_layers", "num_layers", "encoder_layers"), 3)
    config = {key: deeper.get(key, value) for key, value in family.hugging_face.items()}
    text = {**family.text, "layers": 3} if family.text else {}
    settings = config and {**config, **dropout}
    monkeypatch.setitem(FAMILIES, name, replace(family, hugging_face=settings, text=text))
    student, teacher = build(name, folder), build(name, folder)
    towers("last-1")(student)
    with torch.no_grad():
        for one, other in zip(student.parameters(), teacher.parameters(), strict=True):
            other += 0.1 * one.requires_grad
    batch = families.batch(student)
    student.train()
    teacher.eval()
    with torch.no_grad():
        alone = teacher(batch)
        prefix = share_prefix(student, teacher)
        assert prefix is not None
        assert len(prefix._outputs) == (1 if rate else 2)
        with prefix:
            student(batch)
            shared = teacher(batch)
    torch.testing.assert_close(shared.text, alone.text, atol=1e-6, rtol=0)
    torch.testing.assert_close(shared.image, alone.image, atol=1e-6, rtol=0)


def test_both_forms_of_attention_are_one_model(minute: str) -> None:
    """The same names, the same numbers, the same layers with an adapter."""
    student, lora = load(minute, seed=3).eval(), LoRA(rank=2)
    with open_clip_next.next_open_clip():
        own = load(minute, seed=3).eval()
    names = [*student.state_dict()]
    assert [*own.state_dict()] == names
    own.load_state_dict(student.state_dict())
    assert [*lora.targets(own)] == [*lora.targets(student)]
    assert {type(layer) for layer in own.modules() if packed(layer)} == {open_clip_next.Attention}
    for model in (student, own):
        lora.attach(model, averaged=False, seed=1)
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                if key.endswith("lora_B"):
                    parameter += 0.05
    assert [*own.state_dict()] == [*student.state_dict()] != names
    texts = student.tokenise(["one", "two words"])
    pixels = torch.randn(2, 3, 28, 28, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(own.embed_image(pixels), student.embed_image(pixels), atol=1e-6, rtol=0)
    torch.testing.assert_close(own.embed_text(texts), student.embed_text(texts), atol=1e-6, rtol=0)


class Matrix(nn.Module):
    """A linear layer of no known kind."""

    def __init__(self) -> None:
        super().__init__()
        self.w_qkv = nn.Parameter(torch.ones(4, 4))


class Scaled(nn.Linear):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(input)


class Attention(nn.MultiheadAttention):
    def forward(self, *inputs: Any, **more: Any) -> Any:
        return super().forward(*inputs, **more)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (Matrix(), "a Matrix, has a matrix, w_qkv"),
        (Scaled(4, 4), "a Scaled, has a matrix, weight"),
        (Attention(16, 2), "a Attention, has a matrix, in_proj_weight"),
        (nn.MultiheadAttention(16, 2, kdim=4, vdim=4), "a MultiheadAttention, has a matrix, q_proj_weight"),
        (
            nn.MultiheadAttention(16, 2, add_bias_kv=True),
            "a MultiheadAttention, has a matrix, in_proj_weight",
        ),
        (open_clip_next.Attention(16, 2, sharpened=True), "computes attention in a way that is not known"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
@pytest.mark.parametrize("where", ["visual.transformer.resblocks.1", "transformer.resblocks.0"])
def test_a_layer_that_would_be_left_out_is_refused_by_name(
    layer: nn.Module, message: str, where: str, minute: str
) -> None:
    student = load(minute)
    student.clip.get_submodule(where).attn = layer
    with pytest.raises(UserError, match=message) as error:
        LoRA(rank=2).targets(student)
    assert f"clip.{where}.attn of minute" in str(error.value)
    if where.startswith("transformer"):
        ImageTower()(student)  # whoever does not train it need not know it
        assert LoRA(rank=2).targets(student)


def test_a_text_tower_with_unknown_blocks_is_refused(minute: str) -> None:
    student = load(minute)
    student.clip.transformer.steps = student.clip.transformer.resblocks
    del student.clip.transformer.resblocks
    with pytest.raises(UserError, match="nothing to adapt in the text tower of minute"):
        LoRA(rank=2).targets(student)
    with pytest.raises(UserError, match="the text tower of minute has 0 blocks"):
        towers("last-1")(student)


def test_a_part_that_may_lie_before_the_blocks_is_refused(minute: str) -> None:
    student = load(minute)
    student.clip.visual.registers = nn.Parameter(torch.zeros(2, 16))
    with pytest.raises(UserError, match="the image tower of minute has a part that is not known, registers"):
        towers("last-1")(student)


@pytest.mark.parametrize(("kind", "family"), [("biases", "mT5"), ("norms", "OpenAI ViT")])
def test_a_tower_without_the_kind_that_is_tuned_is_refused(kind: str, family: str, folder: Path) -> None:
    student = build(family, folder)
    if kind == "norms":
        for block in student.clip.transformer.resblocks:
            block.ln_1 = block.ln_2 = nn.Identity()
        student.clip.ln_final = nn.Identity()
    with pytest.raises(UserError, match=f"the text tower of {student.name} has no {kind}"):
        towers(kind)(student)


def test_checkpointing_of_one_tower_alone_is_refused(minute: str) -> None:
    student = load(minute)
    text = student.clip.transformer
    student.clip.set_grad_checkpointing = lambda on: student.clip.visual.set_grad_checkpointing(on)
    with pytest.raises(UserError, match="cannot recompute the text tower of minute"):
        save_memory(student, checkpointing=True)
    assert not text.grad_checkpointing
    assert not student.clip.visual.transformer.grad_checkpointing


def test_transformers_is_told_of_every_weight(minute: str) -> None:
    weights = load(minute).clip.state_dict()
    with pytest.raises(UserError, match=r"has no place for .* of this model"):
        to_transformers(weights, {})
    shapes = {"text_model.encoder.extra": torch.zeros(1)}
    with pytest.raises(UserError, match=r"no weights for text_model\.encoder\.extra"):
        to_transformers({}, shapes)


def test_a_tower_without_the_activation_that_is_asked_for_is_refused() -> None:
    clip: Any = nn.Module()
    clip.visual = nn.Module()
    with torch.device("meta"):
        clip.visual.trunk = timm.create_model("tf_efficientnet_lite0", num_classes=0)
    with pytest.raises(UserError, match="has no GELU"):
        set_trunk_activation(clip, {"vision_cfg": {"act_kwargs": {"approximate": "tanh"}}})
    with pytest.raises(UserError, match="without GELU"):
        trunk_activation(clip)


def test_the_newest_text_tower_of_open_clip_has_blocks() -> None:
    tower = nn.Module()
    tower.blocks = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    assert [*Tower("text", tower).blocks] == ["block 1", "block 2"]
