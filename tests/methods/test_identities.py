"""What must be equal to the last bit: a method without its regulariser is its base."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from tracer.core.kernels import Kernel
from tracer.core.regularizers import FTP, SPD
from tracer.core.teachers import EMA, WMA, Frozen
from tracer.core.weights import Weights
from tracer.methods.base import Method, method, methods, options
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.runs.plan import Plan, plan
from tracer.training.setup import first_stage
from tracer.training.step import step

Make = Callable[..., Experiment]

# A method, what makes it plain, and what it then is.
PLAIN: list[tuple[str, dict[str, object], str, dict[str, object]]] = [
    ("tracer", {"strength": 0.0, "frobenius": 0.0}, "flyp", {}),
    ("static_sd", {"strength": 0.0, "preset": "feature"}, "flyp", {}),
    ("ema_sd", {"strength": 0.0, "preset": "feature"}, "flyp", {}),
    ("carot", {"strength": 0.0, "orthogonality": 0.0, "frobenius": 0.0}, "flyp", {}),
    ("starft", {"strength": 0.0}, "flyp", {}),
    ("arf", {"strength": 0.0, "anchors": ""}, "flyp", {}),
    ("l2sp", {"strength": 0.0}, "ft", {}),
    ("kd", {"strength": 0.0}, "ft", {}),
    ("carft", {"strength": 0.0}, "ft", {}),
    ("ldifs", {"strength": 0.0}, "ft", {}),
    ("ldifs", {"strength": 0.0, "loss": "contrastive"}, "flyp", {}),
    ("lipsum", {"strength": 0.0}, "ft", {"temperature": "fixed"}),
    ("ema", {"loss": "contrastive"}, "flyp", {}),  # the student, whose average would be kept
    ("ema", {"loss": "classify"}, "ft", {}),
]


def student(made: Plan, steps: int = 3) -> Weights:
    """The student after a few steps of the plan's first stage."""
    learner = first_stage(made, World("cpu", "fp32"), steps)
    state = learner.state
    for at in range(steps):
        torch.manual_seed(at)
        step(state, learner.batches[at])
    return {name: tensor.clone() for name, tensor in state.student.state_dict().items()}


def same(one: Weights, other: Weights) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def with_method(made: Plan, other: Method) -> Plan:
    return replace(made, method=other)


@pytest.mark.parametrize(("name", "off", "base", "asked"), PLAIN)
def test_without_its_regulariser_a_method_is_its_base(
    name: str, off: dict[str, object], base: str, asked: dict[str, object], experiment: Make
) -> None:
    held, plain = plan(experiment(name, **off)), plan(experiment(base, **asked))
    assert same(student(held), student(plain))


def test_every_regularised_method_has_a_base() -> None:
    weighted = {name for name in methods() if "strength" in {option.name for option in options(name)}}
    assert weighted - {"clipood"} <= {name for name, *_ in PLAIN}  # clipood's margin 0: tests/terms


def test_a_regulariser_that_is_on_moves_the_student_elsewhere(experiment: Make) -> None:
    plain = student(plan(experiment("flyp")))
    assert not same(student(plan(experiment("tracer"))), plain)
    assert not same(student(plan(experiment("arf"))), plain)


def only_at_the_start(t: float) -> float:
    return 1.0 if t < 0.2 else 0.0  # three steps: ticks at 1/8, 3/8, 5/8, 7/8


@pytest.mark.parametrize("kernel", [only_at_the_start])
def test_static_self_distillation_is_tracer_with_a_frozen_kernel(kernel: Kernel, experiment: Make) -> None:
    made, control = plan(experiment("tracer")), plan(experiment("static_sd"))
    stage = replace(made.method.stages[0], teacher=WMA(kernel))
    assert isinstance(control.method.stages[0].teacher, Frozen)
    assert same(student(with_method(made, replace(made.method, stages=(stage,)))), student(control))


@pytest.mark.parametrize("policy", [FTP(radius=float("inf")), SPD(0.0)])
def test_a_tether_that_holds_nothing_is_no_tether(policy: FTP | SPD, experiment: Make) -> None:
    made = plan(experiment("flyp"))
    assert same(student(with_method(made, made.method.regularized(policy))), student(made))


def test_a_radius_of_zero_returns_the_pretrained_weights(experiment: Make) -> None:
    made = plan(experiment("flyp"))
    assert same(
        student(with_method(made, made.method.regularized(FTP(radius=0.0)))),
        dict(made.experiment.pretrained_model().state_dict()),
    )


def test_a_tether_by_name_is_on_every_stage(experiment: Make) -> None:
    made = plan(replace(experiment("lpft"), regularizer="spd:0.5"))
    assert [stage.regularizer for stage in made.method.stages] == [SPD(0.5), SPD(0.5)]


def test_carots_teacher_as_published() -> None:
    """Every 500 of 25 030 steps, m rising in a line from 0.05 to 0.9 over the first fifth."""
    steps = 25_030
    policy = method("carot", every=500).stages[0].policy(steps)
    assert isinstance(policy, EMA)
    assert policy.every == 500
    for at in range(500, steps, 500):
        share = min(1.0, at / (0.2 * steps))
        moved, _ = policy.move(policy.start(steps), at, steps)
        assert 1 - moved == pytest.approx(0.05 + share * (0.9 - 0.05), abs=1e-12)


@pytest.mark.parametrize(("steps", "interval"), [(25_000, 500), (200, 4), (3, 1)])
def test_carots_teacher_keeps_its_pace_at_any_length(steps: int, interval: int) -> None:
    policy = method("carot").stages[0].policy(steps)
    assert policy is not None
    assert policy.every == interval


@pytest.mark.parametrize(("levels", "expected"), [(0, [1, 0.75, 0.5, 0]), (4, [0.75, 0.5, 0.25, 0])])
def test_starfts_weight_fades(levels: int, expected: list[float]) -> None:
    objective = method("starft", levels=levels).stages[0].objective
    weight = {term.name: weight for weight, term in objective.weighted}["spurious"]
    assert callable(weight)
    assert [weight(t) for t in (0.0, 0.25, 0.5, 1.0)] == pytest.approx([0.5 * value for value in expected])


def test_starfts_weight_falls_at_the_start_of_each_epoch() -> None:
    objective = method("starft", strength=1.0, levels=100).stages[0].objective
    weight = {term.name: weight for weight, term in objective.weighted}["spurious"]
    assert callable(weight)
    expected = [1 - (epoch + 1) / 100 for epoch in range(100)]
    assert [weight(step / 700) for step in range(0, 700, 7)] == pytest.approx(expected)


def test_replicas_see_other_data_and_end_as_one(experiment: Make) -> None:
    from tracer.core.model_stock import stock
    from tracer.training.learner import ReplicatedLearner

    learner = first_stage(plan(experiment("stock")), World("cpu", "fp32"), 3)
    assert isinstance(learner, ReplicatedLearner)
    assert not torch.equal(*(batch.image for batch in learner.data[0]))
    for state, batch in zip(learner.states, learner.data[0], strict=True):
        step(state, batch)
    apart = [{k: v.clone() for k, v in state.student.state_dict().items()} for state in learner.states]
    assert not same(*apart)
    learner.merge()
    merged, _ = stock(learner.start, apart)
    assert all(same(dict(state.student.state_dict()), merged) for state in learner.states)
