"""What is saved changes nothing but the price."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from closeness import length, same
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tracer.core.batch import Batch, Scene
from tracer.core.errors import UserError
from tracer.core.shadow import Shadow
from tracer.core.teachers import Frozen
from tracer.methods.base import Stage, method
from tracer.models.acceleration import (
    class_token_only,
    compile_towers,
    save_memory,
    without_other_tokens,
)
from tracer.models.gradient_cache import embed_both
from tracer.models.student import Student, load
from tracer.parallel import World
from tracer.parallel.device import bf16, survives_bf16
from tracer.training.optim import Schedule, adamw
from tracer.training.step import State, step

HOST = ("_local_scalar_dense", "nonzero", "is_nonzero", "equal")  # operations that make the host wait


class Operations(TorchDispatchMode):
    """Notes the name of every operation that runs inside."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


def state_of(stage: Stage, student: Student, steps: int = 4, **more: Any) -> State:
    stage.tune(student)
    policy = stage.policy(steps)
    return State(
        stage=stage,
        student=student.train(),
        shadow=Shadow(student, policy, steps=steps) if policy else None,
        optimiser=adamw(student, 0.1),
        regularizer=None,
        schedule=Schedule(1e-3, 1, steps),
        world=World("cpu", "fp32"),
        **more,
    )


def batch_of(student: Student, count: int = 6, size: int = 28) -> Batch:
    generator = torch.Generator().manual_seed(0)
    image = torch.randint(256, (count, 3, size, size), dtype=torch.uint8, generator=generator)
    text = student.tokeniser(["a dog", "a red car", "a house by the sea"])
    label = torch.arange(count) % 3
    return Batch(image, text, label, label)


@pytest.mark.parametrize("chunk", [None, 4])
def test_a_step_never_makes_the_host_wait(student: Student, chunk: int | None) -> None:
    state = state_of(method("tracer").stages[0], student, clip=1.0, chunk=chunk)
    batch = batch_of(student)
    step(state, batch)  # the first one makes the optimiser's state
    with Operations() as operations:
        step(state, batch)
    assert not {name for name in operations.seen if name in HOST}


@pytest.mark.usefixtures("either_form")
def test_attention_is_fused(student: Student) -> None:
    state = state_of(method("flyp").stages[0], student)
    with Operations() as operations:
        step(state, batch_of(student))
    fused = sum(count for name, count in operations.seen.items() if "scaled_dot_product" in name)
    layers = 4 + 2  # of tiny-28's two towers, each forward and backward
    assert fused == 2 * layers
    assert not operations.seen["_softmax_backward_data"]  # attention spelt out would have one


def test_a_cpu_computes_in_fp32_unless_told_otherwise() -> None:
    """Without bf16 instructions bf16 takes 14 to 20 times as long; that it exists says nothing of its speed."""
    assert not World("cpu", "auto").bf16
    assert World("cpu", "bf16").bf16


def test_a_processor_that_kills_processes_in_bf16_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked of a process that is killed, as by an illegal instruction: a run would end without a word."""
    killed = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGILL)"]
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda command, **more: run(killed, **more))
    survives_bf16.cache_clear()
    try:
        with pytest.raises(UserError, match="--precision fp32"):
            World("cpu", "bf16")
        assert not World("cpu", "fp32").bf16
    finally:
        survives_bf16.cache_clear()


@pytest.mark.parametrize("in_hardware", [True, False])
def test_a_gpu_that_only_emulates_bf16_computes_in_fp32(
    in_hardware: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As torch answers on an A100, and on a V100 or T4."""
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: in_hardware or including_emulation
    )
    gpu = torch.device("cuda")
    assert bf16(gpu, "auto") == in_hardware
    assert not bf16(gpu, "fp32")
    if in_hardware:
        assert bf16(gpu, "bf16")
    else:
        with pytest.raises(UserError, match="use --precision fp32"):
            bf16(gpu, "bf16")


def test_a_teacher_that_is_shown_every_second_pair_is_compared_on_these_pairs(student: Student) -> None:
    """The terms with a teacher are those of a batch of these pairs; the contrastive loss is that of the whole batch."""
    whole, shown = method("tracer").stages[0], method("tracer", distill_pairs=2).stages[0]
    batch = batch_of(student, 4)._replace(caption=torch.tensor([0, 1, 1, 2]))
    half = batch.every(2)
    assert (len(half.image), half.text is not None and len(half.text)) == (2, 2)  # captions 0 and 1 alone
    state, images = state_of(shown, student), list[int]()
    assert state.shadow is not None
    state.shadow.model.register_forward_hook(lambda _, inputs, __: images.append(len(inputs[0].image)))
    with torch.no_grad():
        of_half = whole.objective(
            Scene(*embed_both(student, state.shadow, half, whole.objective.needs), half.label)
        )
        of_all = whole.objective(
            Scene(*embed_both(student, state.shadow, batch, whole.objective.needs), batch.label)
        )
    images.clear()
    parts = step(state, batch).parts
    assert images == [2]
    for name in parts:
        expected = of_half if name in ("feature", "relational", "interactive", "cross") else of_all
        same(parts[name], expected.parts[name], length(student), size=float(student.scale.detach()))
    assert parts["relational"] != of_all.parts["relational"]


@pytest.mark.usefixtures("either_form")
@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_last_block_that_ends_early_changes_no_gradient(student: Student, checkpointing: bool) -> None:
    """Of a student, and of a teacher, whose block is a copy."""
    objective, batch, rows = method("tracer").stages[0].objective, batch_of(student), list[int]()
    twin = deepcopy(student.double().train())
    class_token_only(twin)
    shadows = [Shadow(model, Frozen(), steps=1) for model in (student, twin)]
    if checkpointing:
        save_memory(twin, checkpointing=True)
    for model in (twin, shadows[1].model):
        last: Any = model.get_submodule("clip.visual.transformer.resblocks.3")
        last.register_forward_hook(lambda _, __, out: rows.append(out.shape[1]))
    for model, shadow in zip((student, twin), shadows, strict=True):
        seen, taught = embed_both(model, shadow, batch, objective.needs)
        objective(Scene(seen, taught, batch.label)).total.backward()
    assert rows[:2] == [1, 1]
    expected, found = ({n: p.grad for n, p in model.named_parameters()} for model in (student, twin))
    same(found, expected, length(student))


def test_all_rows_come_back_for_an_objective_that_looks_at_them(student: Student) -> None:
    image, needs = batch_of(student), frozenset({"features"})
    before = student(image, needs).features
    class_token_only(student)
    class_token_only(student, enabled=False)
    after = student(image, needs).features
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_a_tower_without_a_class_token_is_left_alone() -> None:
    convnext = load("convnext_tiny")
    class_token_only(convnext)
    assert not any("forward" in vars(module) for module in convnext.modules())


@pytest.fixture
def resnet(tmp_path: Path) -> Student:
    """A small CLIP with a ResNet, whose attention pool has four heads and 2 × 2 + 1 tokens."""
    config = {
        "embed_dim": 32,
        "vision_cfg": {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "head_width": 64},
        "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 8, "heads": 1, "layers": 1},
    }
    (tmp_path / "resnet.json").write_text(json.dumps(config))
    student = load(str(tmp_path / "resnet.json"), seed=3)
    stray(student)  # biases and the last norm of a block are zero at first
    return student


def test_an_attention_pool_with_one_query_changes_no_gradient(resnet: Student) -> None:
    """Of a student, and of a teacher that follows it; all parameters have a gradient, as DDP requires."""
    stage, batch = method("tracer").stages[0], batch_of(resnet, size=64)
    twin = deepcopy(resnet.double())
    class_token_only(twin)
    states = [state_of(stage, model) for model in (resnet, twin)]
    for state in states:
        assert state.shadow is not None
        stray(state.shadow.model)
    expected, found = (gradients_of(state, batch) for state in states)
    assert len(expected) == len(list(resnet.parameters()))
    same(found, expected, length(resnet))
    with Operations() as operations:
        twin.encode_image(batch.image)
    assert not any("scaled_dot_product" in name for name in operations.seen)
    assert twin.state_dict().keys() == resnet.state_dict().keys()


@torch.no_grad()
def test_an_attention_pool_is_short_while_scoring_and_whole_afterwards(resnet: Student) -> None:
    resnet.eval()
    image = batch_of(resnet, size=64).image
    before = resnet.embed_image(image)
    with without_other_tokens(resnet):
        short = resnet.embed_image(image)
    same(short, before, length(resnet))
    assert torch.equal(resnet.embed_image(image), before)


INDUCTOR = pytest.param(
    "inductor",
    marks=[
        pytest.mark.slow,  # generating and building C++ takes a minute or two
        pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler on a CPU"),
    ],
)


@pytest.mark.parametrize("name", ["flyp", "tracer"])
@pytest.mark.parametrize("backend", ["eager", INDUCTOR])
@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_a_compiled_step_has_the_same_gradient(student: Student, name: str, backend: str) -> None:
    """Gradients, not weights: Adam's first step is ±lr whatever the gradient."""
    twin = deepcopy(student)
    class_token_only(twin)
    plain, compiled = (state_of(method(name).stages[0], each) for each in (student, twin))
    for state in (plain, compiled):
        if state.shadow:
            stray(state.shadow.model)
    compile_towers(twin, *([compiled.shadow.model] if compiled.shadow else []), backend=backend)
    assert twin.state_dict().keys() == student.state_dict().keys()
    batch = batch_of(student)
    expected, found = (gradients_of(state, batch) for state in (plain, compiled))
    assert len(expected) == len(list(student.parameters()))
    same(found, expected, length(student))


def stray(teacher: torch.nn.Module) -> None:
    """A teacher that equals its student distils nothing: move it away, always by the same steps."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in teacher.parameters():
            parameter += 0.02 * torch.randn(parameter.shape, generator=generator)


def gradients_of(state: State, batch: Batch) -> dict[str, Tensor]:
    """What one step hands to the optimiser."""
    found: dict[str, Tensor] = {}

    def note(*_: object) -> None:
        named = state.student.named_parameters()
        found.update({name: p.grad.clone() for name, p in named if p.grad is not None})

    state.optimiser.register_step_pre_hook(note)
    step(state, batch)
    return found
