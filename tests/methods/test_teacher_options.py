"""Options of teachers, temperature and features, from the method's signature to the training step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from closeness import length, same

import tracer
from tracer.core.errors import UserError
from tracer.core.teachers import EMA
from tracer.methods.base import method, methods, options
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.training.learner import Learner
from tracer.training.setup import build_learner, first_stage
from tracer.training.step import step

Make = Callable[..., Experiment]


@pytest.mark.parametrize(
    "name", [name for name in methods() if any(o.name == "buffers" for o in options(name))]
)
@pytest.mark.parametrize("buffers", ["copy", "average", "keep"])
def test_every_moving_teacher_has_a_choice_of_buffers(name: str, buffers: str, experiment: Make) -> None:
    learner = first_stage(plan(experiment(name, buffers=buffers)), World("cpu", "fp32"), 3)
    assert learner.state.shadow is not None
    assert learner.state.shadow.buffers == buffers


def test_methods_with_a_choice_of_buffers() -> None:
    names = {name for name in methods() if any(option.name == "buffers" for option in options(name))}
    assert names == {"tracer", "ema", "ema_sd", "carot"}


def learner_at(log_scale: float, asked: Experiment) -> Learner:
    """A learner whose pretrained logit scale is this one."""
    settled = plan(asked)
    model = settled.experiment.pretrained_model()
    model.clip.logit_scale.data.fill_(log_scale)
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    return build_learner(settled, settled.method.stages[0], 3, model, weights, World("cpu", "fp32"))


def scale_after(learner: Learner, pushed: float) -> float:
    """The logit scale after a step at learning rate zero that finds it at `pushed`."""
    state = learner.state
    state.student.clip.logit_scale.data.fill_(pushed)
    state.schedule = replace(state.schedule, peak=0.0)
    step(state, learner.batches[0])
    return float(state.student.clip.logit_scale.detach())


@pytest.mark.parametrize(
    ("pretrained", "pushed", "clamped", "expected"),
    [
        (4.0, 5.0, True, math.log(100)),  # CLIP's bound
        (4.0, 4.5, True, 4.5),  # below it nothing happens
        (4.72, 4.72, True, 4.72),  # SigLIP's own 112 is not moved by the first step
        (4.72, 5.0, True, 4.72),
        (4.0, 5.0, False, 5.0),  # the released code
    ],
)
def test_the_scale_is_bounded_by_100_or_the_pretrained_one(
    pretrained: float, pushed: float, clamped: bool, expected: float, experiment: Make
) -> None:
    learner = learner_at(pretrained, replace(experiment("flyp"), clamp_scale=clamped, decay=0.0))
    assert scale_after(learner, pushed) == pytest.approx(expected, abs=1e-6)


def test_a_frozen_scale_stays(experiment: Make) -> None:
    learner = learner_at(4.0, experiment("flyp", tune="image"))
    assert scale_after(learner, 5.0) == 5.0


def test_the_clamp_enters_the_id_only_where_it_is_switched_off(experiment: Make) -> None:
    asked = experiment("flyp")
    assert replace(asked, clamp_scale=True).id == asked.id != replace(asked, clamp_scale=False).id


@pytest.mark.parametrize(
    ("name", "asked"), [("tracer", {"every": 4}), ("ema", {"every": 4}), ("carot", {"every": 500.0})]
)
def test_a_teacher_that_would_not_move_is_refused_when_planned(
    name: str, asked: dict[str, Any], experiment: Make
) -> None:
    with pytest.raises(UserError, match="training has 3: use --every 3 or less"):
        plan(experiment(name, **asked))
    plan(experiment(name, every=3))


def test_ema_sd_by_momentum_as_in_the_figures() -> None:
    policy = method("ema_sd", momentum=0.9, ramp=0.2, every=500).stages[0].policy(25_030)
    assert policy == EMA(momentum=0.9, every=500, ramp=0.2)
    assert method("ema_sd").stages[0].policy(100) == EMA(horizon=0.2)
    with pytest.raises(UserError, match=r"momentum \(0\.9\) or a horizon \(0\.5\), not both"):
        method("ema_sd", momentum=0.9, horizon=0.5)


def test_ldifs_has_the_authors_loss_and_ours() -> None:
    def weights(**asked: object) -> dict[str, object]:
        return {term.name: weight for weight, term in method("ldifs", **asked).stages[0].objective.weighted}

    assert weights() == {"classify": 1.0, "token_features": 10.0}
    assert weights(strength=3.0) == {"classify": 1.0, "token_features": 3.0}
    assert weights(variant="blocks") == {"classify": 1.0, "intermediate": 1.0}
    with pytest.raises(UserError, match="unknown variant of ldifs"):
        method("ldifs", variant="tokens")


def test_the_authors_ldifs_by_hand(experiment: Make) -> None:
    """Over the tokens that the blocks give one by one, normalised over the tokens, in float64 NumPy."""
    four_blocks = replace(experiment("ldifs"), model="tiny-28")
    learner = first_stage(plan(four_blocks), World("cpu", "fp32"), 3)
    state = learner.state
    assert state.shadow is not None
    step(state, learner.batches[0])
    with torch.no_grad():
        for parameter in state.student.image_tower.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    batch = learner.batches[1]
    taps = []
    for model in (state.student, state.shadow.model):
        tower: Any = model.image_tower
        with torch.no_grad():
            x = tower._embeds(model.pixels(batch.image))
            outputs = [x.double().numpy()]
            for block in tower.transformer.resblocks:
                x = block(x)
                outputs.append(x.double().numpy())
        quarters = [math.ceil(len(tower.transformer.resblocks) * k / 4) for k in (1, 2, 3, 4)]
        taps.append([outputs[i] for i in (0, *quarters)])
    expected = 0.0
    for mine, theirs in zip(*taps, strict=True):
        a, b = (values / (values**2).sum(axis=1, keepdims=True) ** 0.5 for values in (mine, theirs))
        expected += float(((a - b) ** 2).mean()) / 5
    loss = step(state, batch)
    same(loss.parts["token_features"], np.float32(expected), length(state.student))
    assert expected > 1e-5


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"smoothng": 0.1}, "unknown option of ft 'smoothng': did you mean smoothing"),
        ({"temperature": "fixd"}, "unknown temperature of ft 'fixd': did you mean fixed"),
        ({"frozen_head": 1}, "frozen_head of ft 1: expected True or False"),
        ({"smoothing": float("nan")}, "smoothing of ft nan: expected a finite number"),
    ],
)
def test_options_are_checked_by_name_and_from_python(options: dict[str, Any], told: str) -> None:
    for build in (tracer.methods.ft, partial(method, "ft")):
        with pytest.raises(UserError, match=told):
            build(**options)
