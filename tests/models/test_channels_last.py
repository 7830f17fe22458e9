"""Channels last changes where numbers lie, and no number."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from closeness import length, same
from torch import nn

from tracer.core.batch import Batch
from tracer.core.shadow import Shadow
from tracer.methods.base import method
from tracer.models.student import Student, load
from tracer.parallel import World
from tracer.parallel.device import channels_last, match_layout
from tracer.storage.safetensors_io import write_weights
from tracer.training.checkpoint import capture, restore
from tracer.training.optim import Schedule, adamw
from tracer.training.step import State, step

TEXT = {"context_length": 16, "vocab_size": 49408, "width": 8, "heads": 1, "layers": 1}
VISION = {
    "resnet": {"image_size": 32, "layers": [1, 1, 1, 1], "width": 8, "patch_size": None},
    "convnext": {
        "image_size": 32,
        "timm_model_name": "convnext_atto",
        "timm_pool": "",
        "timm_proj": "linear",
    },
}


@pytest.fixture(params=VISION)
def convolutional(request: pytest.FixtureRequest, tmp_path: Path) -> Student:
    config = {"embed_dim": 32, "vision_cfg": VISION[request.param], "text_cfg": TEXT}
    (tmp_path / "minute.json").write_text(json.dumps(config))
    return load(str(tmp_path / "minute.json"), seed=3)


def last(model: nn.Module) -> list[bool]:
    """Whether the channels of each convolution come last, where that can be told."""
    weights = [module.weight for module in model.modules() if isinstance(module, nn.Conv2d)]
    told = [weight for weight in weights if weight.shape[1] > 1 and weight.shape[2] > 1]
    return [weight.is_contiguous(memory_format=torch.channels_last) for weight in told]


def state_of(student: Student) -> State:
    stage = method("tracer").stages[0]
    policy = stage.policy(4)
    assert policy is not None
    return State(
        stage=stage,
        student=student.train(),
        shadow=Shadow(student, policy, steps=4),
        optimiser=adamw(student, 0.1),
        regularizer=None,
        schedule=Schedule(1e-3, 1, 4),
        world=World("cpu", "fp32"),
    )


def batch_of(student: Student) -> Batch:
    generator = torch.Generator().manual_seed(0)
    image = torch.randint(256, (4, 3, 32, 32), dtype=torch.uint8, generator=generator)
    return Batch(image, student.tokeniser(["a dog", "a car", "a house", "the sea"]), torch.arange(4))


def test_outputs_and_files_are_the_same(convolutional: Student, tmp_path: Path) -> None:
    plain, turned = convolutional.eval(), deepcopy(convolutional).eval()
    channels_last(turned)
    assert all(last(turned))
    assert not any(last(plain))
    image = batch_of(plain).image
    with torch.no_grad():
        same(turned.embed_image(image), plain.embed_image(image), length(plain))
    for name, model in (("plain", plain), ("turned", turned)):
        write_weights(tmp_path / name, dict(model.state_dict()))
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "turned").read_bytes()


def test_teacher_gradients_and_a_resumed_optimiser_keep_the_layout(convolutional: Student) -> None:
    student = convolutional
    channels_last(student)
    state = state_of(student)
    assert state.shadow is not None
    step(state, batch_of(student))
    assert all(last(student))
    assert all(last(state.shadow.model))

    kept = capture(state)
    tensors = {owner: {n: t.clone().contiguous() for n, t in w.items()} for owner, w in kept.tensors.items()}
    again = state_of(deepcopy(student))
    restore(again, kept._replace(tensors=tensors))  # as it comes from files
    assert all(last(again.student))
    for parameter in again.student.parameters():
        for moment in again.optimiser.state[parameter].values():
            assert moment.ndim == 0 or moment.stride() == parameter.stride()
    same(*(step(each, batch_of(student)).total for each in (state, again)), length(student))


def test_a_transformer_is_left_alone(shared_student: Student) -> None:
    before = {name: tensor.stride() for name, tensor in shared_student.state_dict().items()}
    channels_last(shared_student)
    World("cpu", "fp32").place(shared_student)
    assert {name: tensor.stride() for name, tensor in shared_student.state_dict().items()} == before


def test_a_cpu_turns_the_layout_of_convolutional_towers(convolutional: Student) -> None:
    World("cpu", "fp32").place(convolutional)
    assert all(last(convolutional))


def test_values_stay_whatever_the_layout() -> None:
    tensor = torch.arange(16.0).view(1, 4, 2, 2)
    like = torch.empty(1, 4, 2, 2, dtype=torch.float64).to(memory_format=torch.channels_last)
    found = match_layout(tensor, like)
    assert found.stride() == like.stride()
    assert found.dtype == tensor.dtype
    assert torch.equal(found, tensor)
    assert match_layout(tensor, None) is match_layout(tensor, tensor) is tensor
