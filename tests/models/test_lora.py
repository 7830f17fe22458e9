"""LoRA adapters: the merged model is the adapted one, gradients are those of the product, averages are exact."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import pytest
import torch
from closeness import length, near, same
from safetensors.torch import load_file
from torch import Tensor, nn

from tracer.core.batch import Batch
from tracer.core.errors import UserError
from tracer.core.shadow import Shadow
from tracer.core.teachers import WMA
from tracer.models.acceleration import class_token_only
from tracer.models.adapters import adapter
from tracer.models.attention import packed
from tracer.models.lora import A, B, LoRA, LoRAConvolution
from tracer.models.peft_export import export_peft
from tracer.models.student import Head, Student, load
from tracer.models.trainable import HeadOnly, ImageTower, towers


def adapted(
    model: str, spelling: str = "lora:rank=2,alpha=3", averaged: bool = False
) -> tuple[Student, LoRA]:
    student, lora = load(model, seed=3), adapter(spelling)
    lora.attach(student, averaged=averaged, seed=1)
    return spoil(student), lora


def spoil(student: Student, seed: int = 0) -> Student:
    """The student with other factors, as after training."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in student.named_parameters():
            if parameter.requires_grad and name.endswith((A, B)):
                parameter += 0.05 * torch.randn(parameter.shape, generator=generator)
    return student


def batch(student: Student, count: int = 3) -> Batch:
    generator = torch.Generator().manual_seed(0)
    image = torch.randint(0, 256, (count, 3, 28, 28), dtype=torch.uint8, generator=generator)
    return Batch(image, student.tokeniser(["one", "two words", "three words here"][:count]))


def merged(student: Student, lora: LoRA, model: str) -> Student:
    plain = load(model, seed=3)
    plain.load_state_dict(lora.merge(student.state_dict()))
    return plain


@pytest.mark.usefixtures("either_form")
@pytest.mark.parametrize("short", [False, True])
def test_the_merged_model_is_the_adapted_one(minute: str, short: bool) -> None:
    """With the text tower's causal mask, and with a last block that computes the class token only."""
    student, lora = adapted(minute)
    plain, start = merged(student, lora, minute), load(minute, seed=3)
    for model in (student, plain, start):
        class_token_only(model.eval(), short)
    inputs = batch(student)
    with torch.no_grad():
        one, two, before = (model(inputs) for model in (student, plain, start))
    for name in ("image", "text"):
        same(getattr(one, name), getattr(two, name), length(plain))
        assert (getattr(one, name) - getattr(before, name)).abs().max() > 1e-3


@pytest.mark.usefixtures("either_form")
def test_the_gradient_of_a_factor_follows_from_that_of_its_weight(minute: str) -> None:
    """With W + s B A: ∂L/∂B = s ∂L/∂W Aᵀ and ∂L/∂A = s Bᵀ ∂L/∂W."""
    torch.set_default_dtype(torch.float64)
    try:
        student, lora = adapted(minute)
        inputs = batch(student)
        plain = merged(student, lora, minute)
        for model in (student, plain):
            found = model(inputs)
            (found.image * found.text).sum().backward()
    finally:
        torch.set_default_dtype(torch.float32)
    checked = 0
    for name, module in student.named_modules():
        if not hasattr(module, A):
            continue
        weight: Tensor = plain.get_parameter(f"{name}.{'in_proj_weight' if packed(module) else 'weight'}")
        a, b, gradient = module.get_parameter(A), module.get_parameter(B), weight.grad
        assert gradient is not None
        same(b.grad, 1.5 * gradient @ a.T, length(plain))
        same(a.grad, 1.5 * b.T @ gradient, length(plain))
        checked += 1
    assert checked == 12  # two towers of two blocks: attention and two layers of the MLP


@pytest.mark.usefixtures("either_form")
def test_nothing_else_trains_and_the_pretrained_weights_stay(minute: str) -> None:
    student, _ = adapted(minute, averaged=True)
    trained = {name for name, p in student.named_parameters() if p.requires_grad}
    assert {name for name in trained if not name.endswith(B)} == {"clip.logit_scale"}
    start = load(minute, seed=3).state_dict()
    assert all(torch.equal(student.state_dict()[name], tensor) for name, tensor in start.items())
    again, _ = adapted(minute, averaged=True)
    assert all(torch.equal(again.state_dict()[name], t) for name, t in student.state_dict().items())


def test_it_adapts_what_the_method_trains(minute: str) -> None:
    for tune, expected in (
        (ImageTower(), r"clip\.visual\..*"),
        (towers("last-1"), r".*resblocks\.1\..*"),
    ):
        student = load(minute)
        tune(student)
        LoRA(layers="attention").attach(student, averaged=False, seed=0)
        factors = [name for name in student.state_dict() if name.endswith((A, B))]
        assert factors
        assert all(re.fullmatch(rf"{expected}attn\.lora_[AB]", name) for name in factors)


def test_a_head_alone_has_no_adapter(minute: str) -> None:
    student = load(minute)
    student.head = Head(torch.eye(3, 8))
    HeadOnly()(student)
    LoRA().attach(student, averaged=False, seed=0)
    assert not any(name.endswith(B) for name in student.state_dict())


def averages(minute: str, averaged: bool, steps: int = 8) -> tuple[Student, LoRA, Shadow, dict[str, Tensor]]:
    """A teacher of factors after a walk of its student, and the teacher of merged weights."""
    student, lora = adapted(minute, averaged=averaged)
    whole = load(minute, seed=3)
    whole.load_state_dict(lora.merge(student.state_dict()))
    shadow, expected = Shadow(student, WMA(), steps=steps), Shadow(whole, WMA(), steps=steps)
    for number in range(steps):
        spoil(student, number)
        whole.load_state_dict(lora.merge(student.state_dict()))
        shadow.follow(student)
        expected.follow(whole)
    return student, lora, shadow, expected.model.state_dict()


@pytest.mark.usefixtures("either_form")
def test_with_a_frozen_the_average_of_the_factors_is_the_average_of_the_weights(minute: str) -> None:
    _, lora, shadow, expected = averages(minute, averaged=True)
    found = lora.merge(shadow.model.state_dict())
    same(found, expected, sums=20)


def test_with_both_factors_trained_it_is_not(minute: str) -> None:
    student, lora, shadow, expected = averages(minute, averaged=False)
    found, start = lora.merge(shadow.model.state_dict()), load(minute, seed=3).state_dict()
    layers = [name for name in student.state_dict() if name.endswith(B)]
    named = [layers[0], layers[round(len(layers) / 2)], layers[-1]]
    apart = []
    for name in named:
        weight = name.replace(B, "in_proj_weight" if ".attn." in name else "weight")
        mean = expected[weight] - start[weight]
        apart.append(float((found[weight] - expected[weight]).norm() / mean.norm()))
    assert max(apart) > 0.01


@pytest.mark.usefixtures("either_form")
def test_dropout_is_of_the_update_and_only_in_training(minute: str) -> None:
    student, _ = adapted(minute, "lora:rank=2,dropout=0.5")
    inputs = batch(student)
    with torch.no_grad():
        student.train()
        assert not torch.equal(student(inputs).image, student(inputs).image)
        student.eval()
        assert torch.equal(student(inputs).image, student(inputs).image)


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        ("lore", "unknown adapter"),
        ("lora:ranks=3", "unknown option of adapter lora"),
        ("lora:rank=0", "rank 0: expected"),
        ("lora:rank=1.5", "1.5: expected a whole number"),
        ("lora:alpha=0", "alpha 0"),
        ("lora:dropout=1", "dropout 1"),
        ("lora:layers=some", "unknown layers of adapter lora 'some': choose from: all, attention, mlp"),
    ],
)
def test_what_cannot_be_is_refused(spelling: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        adapter(spelling)


def test_a_tower_without_blocks_is_refused() -> None:
    student = Student.__new__(Student)
    nn.Module.__init__(student)
    student.clip, student.name = nn.Module(), "of one's own"
    student.clip.visual, student.clip.text = nn.Linear(2, 2), nn.Linear(2, 2)
    with pytest.raises(UserError, match="nothing to adapt in the image tower of of one's own"):
        LoRA().targets(student)


@pytest.fixture(params=["resnet", "timm"])
def convolutional(request: pytest.FixtureRequest, minute: str, tmp_path: Path) -> str:
    """A small model with a convolutional image tower."""
    towers: dict[str, dict[str, object]] = {
        "resnet": {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8},
        "timm": {"timm_model_name": "tf_efficientnet_lite0", "timm_pool": "avg", "image_size": 64},
    }
    text = json.loads(Path(minute).read_text())["text_cfg"]
    file = tmp_path / "model.json"
    file.write_text(json.dumps({"embed_dim": 8, "vision_cfg": towers[request.param], "text_cfg": text}))
    return str(file)


@pytest.mark.filterwarnings("ignore")  # of peft and what it imports
def test_convolutional_towers_are_adapted(convolutional: str, tmp_path: Path) -> None:
    """Only factors train, merged is applied, and peft computes the same; depthwise convolutions have no factors."""
    import peft  # here, because it is slow

    student, lora = adapted(convolutional)
    trained = [name for name, parameter in student.named_parameters() if parameter.requires_grad]
    assert all(name.endswith((A, B, "logit_scale")) for name in trained)
    assert any(".visual." in name for name in trained)
    assert all(layer.groups == 1 for layer in student.modules() if isinstance(layer, LoRAConvolution))
    end, start = merged(student, lora, convolutional), load(convolutional, seed=3)
    pixels = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    export_peft(end, start, tmp_path / "adapter", rank=2)
    loaded = peft.PeftModel.from_pretrained(copy.deepcopy(start.clip), tmp_path / "adapter").eval()
    with torch.no_grad():
        applied = student.eval().encode_image(pixels)
        assert (applied - start.eval().encode_image(pixels)).abs().max() > 1e-4
        for each in (end.eval(), loaded):
            same(each.encode_image(pixels), applied, length(end))


@pytest.mark.usefixtures("either_form")
@pytest.mark.filterwarnings("ignore")  # of peft and what it imports
def test_the_adapter_alone_loads_in_peft(minute: str, tmp_path: Path) -> None:
    import peft  # here, because it is slow

    student, lora = adapted(minute)
    start, end = load(minute, seed=3), merged(student, lora, minute)
    export_peft(end, start, tmp_path / "adapter", rank=2)
    loaded = peft.PeftModel.from_pretrained(copy.deepcopy(start.clip), tmp_path / "adapter").eval()
    pixels = end.eval().pixels(batch(end).image)
    tokens = end.tokeniser.tokeniser(["one", "two words"])
    with torch.no_grad():
        same(loaded.encode_image(pixels), end.clip.encode_image(pixels), length(end))
        same(loaded.encode_text(tokens), end.clip.encode_text(tokens), length(end))


@pytest.mark.parametrize(("quick", "base"), [(True, "ViT-B-16-quickgelu"), (False, "ViT-B-16")])
def test_an_adapter_names_the_model_that_it_belongs_to(
    minute: str, quick: bool, base: str, tmp_path: Path
) -> None:
    """OpenAI's weights compute with QuickGELU, which open_clip leaves out under the plain name."""
    student, lora = adapted(minute)
    start, end = load(minute, seed=3), merged(student, lora, minute)
    start.name, start.config = "ViT-B-16", start.config | {"quick_gelu": quick}
    export_peft(end, start, tmp_path / "adapter", rank=2)
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == base


def test_only_low_rank_updates_are_written_as_an_adapter(minute: str, tmp_path: Path) -> None:
    student, lora = adapted(minute)
    start, end = load(minute, seed=3), merged(student, lora, minute)
    with torch.no_grad():
        end.clip.ln_final.weight += 0.1
    with pytest.raises(UserError, match=r"also change ln_final\.weight"):
        export_peft(end, start, tmp_path / "a", rank=2)
    end = merged(student, lora, minute)
    with torch.no_grad():
        end.clip.transformer.resblocks[0].mlp.c_fc.weight.normal_()
    with pytest.raises(UserError, match=r"update of transformer\.resblocks\.0\.mlp\.c_fc is not of low rank"):
        export_peft(end, start, tmp_path / "a", rank=2)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(("rank", "runs"), [(6, 1), (16, 1), (3, 2)])
def test_an_adapter_of_more_than_half_of_a_layer_is_written(
    rank: int, runs: int, minute: str, tmp_path: Path
) -> None:
    """Its text tower is 8 wide: rank 6 is over half of it, 16 is over all of it, and two runs of 3 make 6."""
    student, lora = adapted(minute, f"lora:rank={rank * runs}")
    start, end = load(minute, seed=3), merged(student, lora, minute)
    export_peft(end, start, tmp_path / "adapter", rank, runs)
    factors = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    layer = "transformer.resblocks.0.mlp.c_fc"
    a, b = (factors[f"base_model.model.{layer}.lora_{factor}.weight"] for factor in "AB")
    before, after = (model.clip.get_submodule(layer).get_parameter("weight") for model in (start, end))
    same(before + b @ a, after, sums=40)  # 8 × 32, and the SVD that the factors come from


def test_its_spelling_names_every_option() -> None:
    """The identity of a run is made of it: the same adapter, spelt in two ways, is one run."""
    assert str(adapter("lora:rank=4")) == "lora:rank=4,alpha=4.0,dropout=0.0,layers=all,factors=auto"
    assert adapter(str(adapter("lora:rank=4,factors=AB"))) == LoRA(rank=4, factors="AB")


@pytest.mark.filterwarnings("ignore")  # of transformers
def test_text_towers_of_hugging_face_are_adapted(minute: str) -> None:
    from open_clip.hf_model import HFTextEncoder
    from transformers import BertConfig

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(0)
    text = HFTextEncoder(
        "", 8, config=BertConfig(vocab_size=50, **sizes), proj_type="linear", pretrained=False
    )
    student, lora = load(minute), LoRA(rank=2)
    student.clip.text = text.eval()
    start = copy.deepcopy(text)
    lora.attach(student, averaged=False, seed=0)
    layers = {name.rpartition(".")[0] for name in text.state_dict() if name.endswith(B)}
    assert len(layers) == 2 * 6  # queries, keys, values, output and two layers of the MLP
    spoil(student)
    tokens = torch.tensor([[1, 5, 9, 0], [1, 7, 0, 0]])
    with torch.no_grad():
        adapted, before = text(tokens), start(tokens)
        start.load_state_dict(lora.merge(text.state_dict()))
        same(adapted, start(tokens), length(start))
        assert not near(adapted, before, length(start))
