"""What training mode changes without a gradient: found in every layer that has it, and kept from a pretrained start."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from timm import layers as timm_layers
from torch import Tensor, nn

from tracer.core.errors import UserError
from tracer.methods.base import Method, method, methods
from tracer.models.export import export
from tracer.models.running_statistics import estimate, moved, running_layers, running_statistics
from tracer.models.student import Head, load
from tracer.models.trainable import HeadOnly
from tracer.runs.experiment import Experiment
from tracer.runs.plan import Plan, plan
from tracer.training.setup import prepare

CHANNELS = 8
SHAPE_OF = {"2d": (4, CHANNELS, 6, 6), "1d": (4, CHANNELS, 6), "3d": (4, CHANNELS, 3, 3, 3)}
SHAPES = tuple(SHAPE_OF.values())


def buffers(module: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in module.named_buffers()}


def changed(before: dict[str, Tensor], module: nn.Module) -> set[str]:
    return {name for name, tensor in module.named_buffers() if not torch.equal(before[name], tensor)}


def forward(module: nn.Module) -> bool:
    """A pass over noise of a shape that the module takes; whether there is one."""
    for shape in SHAPES:
        with suppress(Exception):
            module(torch.randn(shape, generator=torch.Generator().manual_seed(0)))
            return True
    return False


def known_layers() -> Iterator[Any]:
    """Every norm of torch and timm that is made of a number of channels and has buffers."""
    kinds = {
        each for package in (nn, timm_layers) for _, each in inspect.getmembers(package, inspect.isclass)
    }
    for kind in sorted(kinds, key=lambda each: each.__name__):
        if "norm" not in kind.__name__.lower() or "Lazy" in kind.__name__:
            continue
        for options in ({"track_running_stats": True}, {}):
            with suppress(Exception):
                layer = kind(CHANNELS, **options)
                if [*layer.buffers()] and forward(layer.train()):
                    yield pytest.param(kind, options, id=kind.__name__)
                    break


LAYERS = [*known_layers()]


def test_the_layers_of_torch_and_timm_are_among_those_that_are_tried() -> None:
    tried = {each.id for each in LAYERS}
    assert {"BatchNorm2d", "SyncBatchNorm", "InstanceNorm2d", "BatchNormAct2d", "EvoNorm2dB0"} <= tried
    assert "FrozenBatchNormAct2d" in tried


@pytest.mark.parametrize(("kind", "options"), LAYERS)
def test_whatever_training_changes_is_found_and_can_be_kept(kind: Any, options: dict[str, Any]) -> None:
    module = nn.Sequential(kind(CHANNELS, **options)).train()
    before = buffers(module)
    forward(module)
    assert changed(before, module) == {
        name for name in running_statistics(module) if name in changed(before, module)
    }
    assert bool(running_layers(module)) == bool(changed(before, module))
    assert moved(module, before, buffers(module)) == bool(changed(before, module))
    after = buffers(module)
    for layer in running_layers(module).values():
        layer.training = False
    forward(module)
    assert not changed(after, module)


@pytest.mark.parametrize(("kind", "options"), LAYERS)
def test_statistics_over_batches_are_the_mean_of_theirs(kind: Any, options: dict[str, Any]) -> None:
    """Whatever they were before; and no dropout beside them changes what they are."""
    shape = next((shape for end, shape in SHAPE_OF.items() if kind.__name__.endswith(end)), SHAPES[0])
    batches = [torch.randn(shape, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]
    module = nn.Sequential(nn.Dropout(0.9), kind(CHANNELS, **options))
    alone = []
    for batch in batches:
        estimate(module, [batch])
        alone.append(buffers(module))
    estimate(module, batches)
    for name in running_statistics(module):
        if name.endswith(("mean", "var")):
            expected = torch.stack([each[name] for each in alone]).mean(dim=0)
            torch.testing.assert_close(module.state_dict()[name], expected)
    assert not any(each.training for each in module.modules())


@pytest.fixture(scope="module")
def convolutional(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The config of a small model with BatchNorm, and beside it, in `model`, one that stands for a pretrained one."""
    folder = tmp_path_factory.mktemp("convolutional")
    vision = {"image_size": 32, "layers": [1, 1, 1, 1], "width": 8}
    text = {"context_length": 16, "vocab_size": 49408, "width": 8, "heads": 1, "layers": 1}
    file = folder / "small.json"
    file.write_text(json.dumps({"embed_dim": 8, "vision_cfg": vision, "text_cfg": text}))
    export(load(str(file)), folder / "model")
    return file


def settled(name: str, model: Path, data: Path, **settings: Any) -> Plan:
    options = {"every": 1} if name == "carot" else {}
    experiment = Experiment(
        method=name, data=str(data), model=str(model), batch=8, steps=4, options=options, **settings
    )
    return plan(experiment, check_images=False)


def updates(made: Plan) -> list[bool]:
    """Whether the images of a step update statistics, in each stage."""
    found = []
    for stage in made.method.stages:
        student = made.experiment.pretrained_model()
        student.head = Head(torch.zeros(len(made.train.classes), 8))
        prepare(made, stage, student, made.steps)
        before = buffers(student)
        student.encode_image(torch.zeros(4, 3, 32, 32))
        found.append(bool(changed(before, student)))
    return found


@pytest.mark.parametrize("name", [name for name in methods() if name != "arf"])
def test_every_method_keeps_the_statistics_of_a_pretrained_start(
    name: str, convolutional: Path, some_digits: Path
) -> None:
    made = settled(name, convolutional.parent / "model", some_digits)
    assert made.experiment.batchnorm == "keep"
    assert not any(updates(made))


@pytest.mark.parametrize("name", ["flyp", "lpft", "clipood"])
@pytest.mark.parametrize("start", ["random", "asked"])
def test_statistics_are_trained_with_random_weights_and_where_that_is_asked_for(
    name: str, start: str, convolutional: Path, some_digits: Path
) -> None:
    if start == "random":
        made = settled(name, convolutional, some_digits, pretrained="none")
    else:
        made = settled(name, convolutional.parent / "model", some_digits, batchnorm="train")
    assert made.experiment.batchnorm == "train"
    assert updates(made) == [not head_only(made.method, i) for i in range(len(made.method.stages))]


def head_only(made: Method, index: int) -> bool:
    return isinstance(made.stages[index].tune, HeadOnly)


@pytest.mark.parametrize("more", [{"adapter": "lora"}, {"batchnorm": "keep", "pretrained": "none"}])
def test_an_adapter_and_a_plain_keep_leave_them_alone(
    more: dict[str, Any], convolutional: Path, some_digits: Path
) -> None:
    model = convolutional if more.get("pretrained") else convolutional.parent / "model"
    assert not any(updates(settled("flyp", model, some_digits, **more)))


def test_what_is_settled_is_settled_again_to_the_same(convolutional: Path, some_digits: Path) -> None:
    """The id of a run does not depend on whether its default was named."""
    made = settled("flyp", convolutional.parent / "model", some_digits)
    again = plan(made.experiment, check_images=False)
    assert again.experiment == made.experiment
    assert (
        again.experiment.id
        == settled("flyp", convolutional.parent / "model", some_digits, batchnorm="keep").experiment.id
    )


def test_a_folder_has_its_own_weights_and_is_no_random_start(convolutional: Path, some_digits: Path) -> None:
    with pytest.raises(UserError, match="brings its own weights: --pretrained none"):
        settled("flyp", convolutional.parent / "model", some_digits, pretrained="none")


@pytest.mark.parametrize("trunk", ["resnet10t", "tf_efficientnet_lite0", "fastvit_t8"])
def test_the_towers_of_timm(trunk: str, convolutional: Path, tmp_path: Path) -> None:
    """Their BatchNorms are of timm's own classes; and a whole model that is frozen so gives its answers of before."""
    config = json.loads(convolutional.read_text())
    config["vision_cfg"] = {
        "timm_model_name": trunk,
        "timm_pool": "avg",
        "timm_proj": "linear",
        "image_size": 32,
    }
    file = tmp_path / "timm.json"
    file.write_text(json.dumps(config))
    student = load(str(file))
    own = [each for each in student.modules() if isinstance(each, nn.BatchNorm2d)]
    assert {id(each) for each in running_layers(student).values()} == {id(each) for each in own} != set()
    method("flyp").stages[0].tune(student)
    student.frozen_statistics = True
    before = buffers(student.train())
    student.encode_image(torch.randn(4, 3, 32, 32))
    assert not changed(before, student)
