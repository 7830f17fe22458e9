"""`--tune`: which parameters learn, and that nothing else changes, whoever teaches."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import timm
import torch
from torch import Tensor, nn

from tracer.core.batch import Batch
from tracer.core.errors import UserError
from tracer.core.shadow import Shadow
from tracer.core.teachers import WMA
from tracer.methods.base import Stage
from tracer.methods.presets import composite
from tracer.models.student import Student, load
from tracer.models.towers import Tower
from tracer.models.trainable import towers
from tracer.parallel import World
from tracer.training.optim import Schedule, adamw
from tracer.training.step import State, step

CHOICES = ("image", "last-1")
LAST = (  # tiny-28 has four image blocks and two text blocks
    *("visual.transformer.resblocks.3.", "visual.ln_post.", "visual.proj", "logit_scale"),
    *("transformer.resblocks.1.", "ln_final.", "text_projection"),
)


def trainable(student: Student) -> set[str]:
    return {name.removeprefix("clip.") for name, p in student.named_parameters() if p.requires_grad}


def test_each_choice_trains_what_it_says(student: Student) -> None:
    everything = trainable(student)
    expected = {
        "norms": lambda name: "ln_" in name or name == "logit_scale",
        "biases": lambda name: name.endswith("bias") or name == "logit_scale",
        "last-1": lambda name: name.startswith(LAST),
    }
    for choice, chosen in expected.items():
        towers(choice)(student)
        assert trainable(student) == {name for name in everything if chosen(name)} != set()


def test_the_last_blocks_of_the_image_tower_alone(student: Student) -> None:
    towers("image-last-1")(student)
    last = tuple(name for name in LAST if name.startswith("visual."))
    assert trainable(student)
    assert all(name.startswith(last) for name in trainable(student))


@pytest.mark.parametrize(
    ("trunk", "stem", "after"),
    [
        ("tf_efficientnet_lite0", {"conv_stem", "bn1"}, {"conv_head", "bn2"}),
        ("convnext_atto", {"stem"}, {"head"}),
        ("vit_tiny_patch16_224", {"patch_embed", "cls_token", "pos_embed"}, {"norm"}),
    ],
)
def test_the_stem_of_a_tower_of_timm_is_frozen_and_what_follows_its_blocks_trains(
    trunk: str, stem: set[str], after: set[str]
) -> None:
    """Else the teacher would take the outputs of frozen blocks from a student whose stem has moved."""
    tower = nn.Module()
    with torch.device("meta"):
        tower.trunk = timm.create_model(trunk, num_classes=0)
    first = {id(parameter) for parameter in Tower("image", tower).input_parameters}
    outside = {
        name: p for name, p in tower.trunk.named_parameters() if not name.startswith(("blocks", "stages"))
    }
    assert {name.split(".")[0] for name, p in outside.items() if id(p) in first} == stem
    assert {name.split(".")[0] for name, p in outside.items() if id(p) not in first} == after


@pytest.mark.parametrize("choice", ["last-0", "last-x", "lasts-2", "text", "text-last-1"])
def test_an_unknown_choice_is_refused(choice: str) -> None:
    with pytest.raises(UserError, match="--tune"):
        towers(choice)


def test_more_blocks_than_there_are_are_refused(student: Student) -> None:
    with pytest.raises(UserError, match="last-3: the text tower of tiny-28 has 2 blocks"):
        towers("last-3")(student)


def trained(
    minute: str, choice: str, full: bool, steps: int = 20
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Student and teacher after `steps` steps; the teacher a full copy, or one that shares what is frozen."""
    student: Any = load(minute, seed=3)
    towers(choice)(student)
    source = copy.deepcopy(student).requires_grad_(True) if full else student
    shadow = Shadow(source, WMA(), steps=steps)
    state = State(
        stage=Stage(composite("released", 0.9, "class"), teacher=WMA()),
        student=student,
        shadow=shadow,
        optimiser=adamw(student, 0.1),
        regularizer=None,
        schedule=Schedule(1e-3, 2, steps),
        world=World("cpu"),
    )
    text = student.tokeniser(["one", "two"])
    for number in range(steps):
        generator = torch.Generator().manual_seed(number)
        image = torch.randint(0, 256, (2, 3, 28, 28), dtype=torch.uint8, generator=generator)
        step(state, Batch(image, text, torch.tensor([0, 1])))
    return student.state_dict(), shadow.model.state_dict()


@pytest.mark.parametrize("choice", CHOICES)
def test_a_teacher_that_shares_what_is_frozen_is_a_full_one_to_the_bit(minute: str, choice: str) -> None:
    for shared, full in zip(trained(minute, choice, False), trained(minute, choice, True), strict=True):
        assert all(torch.equal(shared[name], full[name]) for name in full)
