"""Learned tokens beside the input: the start is the pretrained model, and nothing else trains."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from closeness import length, same
from safetensors.torch import load_file
from torch import Tensor, nn

import tracer
from tracer.core.batch import Batch
from tracer.core.errors import UserError
from tracer.core.shadow import Shadow
from tracer.core.teachers import WMA
from tracer.models.acceleration import class_token_only
from tracer.models.adapters import adapter
from tracer.models.open_clip_compat import open_clip
from tracer.models.prefix import share_prefix
from tracer.models.prompt_tokens import Prompted, Prompts
from tracer.models.student import Student, load
from tracer.models.trainable import towers
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan

TEXTS = ("one", "two words", "three words here")


def prompted(model: str, gate: float = 1.0, spelling: str = "prompts:image=3,text=2") -> Student:
    student, prompts = load(model, seed=3), adapter(spelling)
    prompts.prepare(student)
    prompts.attach(student, averaged=True, seed=1)
    for module in student.modules():
        if isinstance(module, Prompted):
            module.gate.fill_(gate)
    return student.eval()


def batch(student: Student) -> Batch:
    generator = torch.Generator().manual_seed(0)
    image = torch.randint(0, 256, (3, 3, 28, 28), dtype=torch.uint8, generator=generator)
    return Batch(image, student.tokeniser(TEXTS))


@torch.no_grad()
def embeddings(student: Student) -> tuple[Tensor, Tensor]:
    found = student(batch(student))
    return found.image, found.text


def test_with_gate_0_it_is_the_pretrained_model_and_with_gate_1_it_is_not(minute: str) -> None:
    start = embeddings(load(minute, seed=3).eval())
    same(embeddings(prompted(minute, gate=0.0)), start, length(load(minute)))
    for mine, theirs in zip(embeddings(prompted(minute)), start, strict=True):
        assert (mine - theirs).abs().max() > 1e-3


def test_a_text_does_not_depend_on_its_padding_or_its_neighbours(minute: str) -> None:
    student = prompted(minute)
    with torch.no_grad():
        together = student.embed_text(student.tokeniser.tokeniser(list(TEXTS)))  # padded
        alone = torch.cat([student.embed_text(student.tokenise(text)) for text in TEXTS])
    same(together, alone, length(student))


@pytest.mark.usefixtures("either_form")
@pytest.mark.parametrize("gate", [0.3, 1.0])
def test_a_last_block_of_the_class_token_alone_changes_nothing(minute: str, gate: float) -> None:
    student = prompted(minute, gate)
    whole, _ = embeddings(student)
    class_token_only(student)
    short, _ = embeddings(student)
    same(whole, short, length(student))


def test_tokens_and_temperature_train_and_the_teacher_shares_the_rest(minute: str) -> None:
    student = prompted(minute)
    names = {"clip.visual.transformer.prompt", "clip.transformer.prompt", "clip.logit_scale"}
    assert {name for name, p in student.named_parameters() if p.requires_grad} == names
    shadow = Shadow(student, WMA(), steps=4)
    own = shadow.state_dict()["model"].keys()
    assert {name for name in own if name in dict(student.named_parameters())} == names
    assert share_prefix(student, shadow.model) is None  # the first block sees other tokens
    found = student(batch(student))
    (found.image * found.text).sum().backward()
    for name in names - {"clip.logit_scale"}:
        gradient = student.get_parameter(name).grad
        assert gradient is not None
        assert (gradient.abs().sum(dim=1) > 0).all()  # every token matters
    with torch.no_grad():
        student.get_parameter("clip.transformer.prompt").add_(1.0)
    shadow.follow(student)
    assert not torch.equal(embeddings(shadow.model)[1], embeddings(student)[1])  # it has tokens of its own


def test_they_train_where_the_method_would(minute: str) -> None:
    student, prompts = load(minute), Prompts(2, 2)
    prompts.prepare(student)
    towers("image")(student)
    prompts.attach(student, averaged=False, seed=0)
    assert [n for n, p in student.named_parameters() if p.requires_grad] == ["clip.visual.transformer.prompt"]
    towers("image")(student)
    with pytest.raises(UserError, match="not trained by this method"):
        Prompts(0, 2).attach(student, averaged=False, seed=0)


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        ("prompts:image=-1", "image -1: expected a whole number"),
        ("prompts:text=1.5", "1.5: expected a whole number"),
        ("prompts:image=0,text=0", "expected tokens in one tower"),
        ("prompts:depth=3", "unknown option of adapter prompts"),
    ],
)
def test_what_cannot_be_is_refused(spelling: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        adapter(spelling)


def test_a_tower_without_tokens_is_refused() -> None:
    with torch.device("meta"):
        clip = open_clip.create_model("RN50", device="meta", weights_only=True)
    student = Student.__new__(Student)
    nn.Module.__init__(student)
    student.clip, student.name = clip, "RN50"
    with pytest.raises(UserError, match="the image tower of RN50 takes no further tokens"):
        Prompts().prepare(student)


def test_methods_that_compare_all_blocks_are_refused(some_digits: Path, minute: str) -> None:
    experiment = Experiment(
        method="ldifs", data=str(some_digits), model=minute, pretrained="none", adapter="prompts"
    )
    with pytest.raises(UserError, match="compares those of all blocks"):
        plan(experiment)


@pytest.fixture(scope="module")
def run(some_digits: Path, minute: str, tmp_path_factory: pytest.TempPathFactory) -> tracer.Run:
    settings = {"adapter": "prompts:image=2,text=2", "steps": 3, "batch": 8, "lr": 1e-2, "device": "cpu"}
    folder = tmp_path_factory.mktemp("prompts") / "run"
    return tracer.finetune(some_digits, model=minute, pretrained="none", out=folder, workers=0, **settings)


def test_a_run_holds_them_and_a_mixture_ends_in_the_pretrained_model(run: tracer.Run) -> None:
    weights = load_file(run.weights_file("result"))
    assert weights["clip.visual.transformer.prompt"].shape == (2, 16)
    assert weights["clip.transformer.gate"] == 1
    start, end = (embeddings(run.student(name).eval()) for name in ("pretrained", "result"))
    none, half = (embeddings(tracer.merge(run, wise=a, device="cpu").student().eval()) for a in (0.0, 0.5))
    same(start, none, length(run.student("pretrained")))
    for before, between, after in zip(start, half, end, strict=True):
        assert 0 < (between - before).norm() < (after - before).norm()


def test_onnx_holds_them(run: tracer.Run, tmp_path: Path) -> None:
    """The writer compares the graphs with the model, for batches of several sizes."""
    notes: list[str] = []
    tracer.export(run, tmp_path / "onnx", format="onnx", note=notes.append)
    assert "its embeddings differ by at most" in notes[0]


def test_formats_that_have_no_place_for_them_are_refused(run: tracer.Run, tmp_path: Path) -> None:
    for form in ("open_clip", "hf"):
        with pytest.raises(UserError, match="no place for the learned tokens"):
            tracer.export(run, tmp_path / form, format=form)
        assert not (tmp_path / form).exists()
    with pytest.raises(UserError, match="--format peft holds LoRA"):
        tracer.export(run, tmp_path / "peft", format="peft")
